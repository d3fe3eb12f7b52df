#!/bin/sh
# Everything that a release must pass and that is too long for each change. As root. Takes hours.
#   sh tests/nightly.sh [PART...]
# The parts, all of them unless some are named: tests (the tests labelled nightly), asan, tsan, fuzz (each fuzzer for two minutes), replay
# (each rule through twenty scripts of events), faults (a fault at each write to disk; a thousand damages to its files), fleet (each fault of a fleet ten times, and three with networks that lose packets), soak (ten
# minutes), aarch64 (the same bits under qemu), container, install, mutation (how many of a hundred planted faults the tests catch; others each day). Replay, faults, fleet and aarch64 need what tests builds in build/. A part
# that fails does not stop the others; the last lines say which passed.
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
. "$root/tests/environment.sh"
all="tests asan tsan fuzz replay faults fleet soak aarch64 container install mutation"
# shellcheck disable=SC2086  # a list of words
[ $# -gt 0 ] || set -- $all
for name; do
  case " $all " in
    *" $name "*) ;;
    *) printf 'tests/nightly.sh: there is no part %s, but: %s\n' "$name" "$all" >&2; exit 2 ;;
  esac
done

part() {
  case $1 in
    tests) sh tests/run.sh --nightly ;;
    asan) sh tests/run.sh --asan --nightly ;;
    tsan) sh tests/run.sh --tsan --nightly ;;
    fuzz) sh tests/fuzz/run.sh 120 ;;
    replay) PERCEPTROND_REPLAY_SEEDS=20 build/bin/replay_test --gtest_brief=1 ;;
    faults)
      PERCEPTROND_ALL_FAULTS=1 build/bin/storage_faults_test || return
      PERCEPTROND_DAMAGES=1000 build/bin/damage_test
      ;;
    fleet)
      sh tests/integration/fleet/run.sh 10 || return
      sh tests/integration/fleet/run.sh 3 --namespaces
      ;;
    soak) sh tests/soak/run.sh 600 ;;
    aarch64) sh tests/replay/aarch64.sh ;;
    container) python3 tests/deploy/container_test.py ;;
    install) python3 tests/deploy/install_test.py ;;
    mutation) python3 tests/mutation/mutate.py --seed "$(date +%Y%m%d)" --count 100 ;;
  esac
}

outcomes=
code=0
for name; do
  printf '\n==== %s\n' "$name"
  start=$(date +%s)
  if (part "$name") </dev/null; then outcome=passed; else outcome=FAILED code=1; fi
  outcomes="$outcomes$(printf '%-10s %s in %d s' "$name" "$outcome" $(($(date +%s) - start)))
"
done
printf '\n==== nightly\n%s' "$outcomes"
exit $code
