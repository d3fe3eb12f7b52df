#!/bin/sh
# Installs, builds and runs every test. tests/README.md says more.
set -eu

usage() {
  cat <<'END'
Usage: sh tests/run.sh [--style | --tsan | --tsan-short | --asan | --asan-short] [--label X]... [--no-install] [--jobs N]
                       [-- CTEST-OPTIONS]

  (none)         builds into build/ (Release) and runs every test
  --style        builds nothing; runs the checks of the source itself, but for clang's analysis of locks
  --tsan         builds into build-tsan/ with ThreadSanitizer; runs the tests labelled "tsan"
  --tsan-short   the same but for perceptronctl, tests of one call at a time, benchmarks and the fuzzers' corpora
  --asan         builds into build-asan/ with AddressSanitizer and UndefinedBehaviorSanitizer;
                 runs the tests of core/ and client/
  --asan-short   the same, but runs only the tests labelled "asan", and only one in 16 of the tests that
                 repeat for each rule, which ones depends on the commit; clang builds them and both programs,
                 and analyses their locks
  --label X      only the tests labelled X (a regular expression); may be repeated
  --no-install   install no packages
  --jobs N       compilers, and tests, that may run at once (default: as many as fit)
  --             what follows goes to ctest, as in: -- -R Journal --repeat until-fail:20

The last lines are ctest's own.
END
}

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build
kind=Release
sanitize=
program_label=
short=
labels=
install=yes
jobs=
targets=all
while [ $# -gt 0 ]; do
  case $1 in
    --style) targets='' labels=style ;;
    --tsan) build=$root/build-tsan kind=Debug sanitize=thread program_label=tsan ;;
    --tsan-short) build=$root/build-tsan kind=Debug sanitize=thread program_label=tsan short=yes ;;
    --asan-short) build=$root/build-asan kind=Debug sanitize=address,undefined program_label=asan ;;
    --asan) build=$root/build-asan kind=Debug sanitize=address,undefined ;;
    --label) labels="$labels ${2:?--label takes a label}"; shift ;;
    --jobs) jobs=${2:?--jobs takes a number}; shift ;;
    --no-install) install=no ;;
    --help | -h) usage; exit 0 ;;
    --) shift; break ;;
    *) printf 'tests/run.sh: unknown option %s\n\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
labels="$labels $program_label"

say() { printf '\n== %s\n' "$*"; }

if [ "$install" = yes ]; then
  say "packages"
  sh "$root/deploy/install_packages.sh" build test clients
fi

if [ -z "$jobs" ]; then
  # A compiler that reads gRPC's headers takes up to 1.5 GiB.
  jobs=$(nproc)
  fits=$(awk '/^MemAvailable/ { print int($2 / 1572864) }' /proc/meminfo)
  if [ "${fits:-1}" -lt "$jobs" ]; then jobs=${fits:-1}; fi
  if [ "$jobs" -lt 1 ]; then jobs=1; fi
fi

say "build into ${build#"$root"/}"
# Given by the caller's arguments: what is left is for ctest.
configure() {
  if [ -f "$build/CMakeCache.txt" ]; then
    cmake -S "$root" -B "$build" "$@"
  else
    cmake -S "$root" -B "$build" -G Ninja "$@"
  fi
}
if [ "$sanitize" = address,undefined ]; then
  # As tests/fuzz/run.sh does, in the same directory: what both need is compiled once.
  configure -DCMAKE_CXX_COMPILER=clang++-14 -DCMAKE_BUILD_TYPE=Debug \
    -DPERCEPTROND_SANITIZE="$sanitize" -DPERCEPTROND_FUZZ=ON -DPERCEPTROND_TESTS=ON
elif [ "$kind" = Debug ]; then
  configure -DCMAKE_BUILD_TYPE=Debug -DPERCEPTROND_SANITIZE="$sanitize" -DPERCEPTROND_TESTS=ON
else
  configure -DCMAKE_BUILD_TYPE="$kind" -DPERCEPTROND_TESTS=ON
fi

# A sanitizer's run builds its own tests only.
if [ "$program_label" = asan ]; then
  targets="perceptrond perceptronctl tests_asan"
  # The commit's hash says which, so that in a few commits all of them run.
  commit=$(git -C "$root" rev-parse HEAD 2>/dev/null || echo 0)
  chosen=$((0x$(printf %.7s "$commit") % 16))
  say "of the tests that repeat for each rule: one in 16, from number $chosen"
  others=$(seq 0 15 | grep -vx "$chosen" | paste -sd '|')
  set -- -E "_each_rule_($others)\$" "$@"
elif [ -n "$short" ]; then
  targets=tests_tsan
  set -- -LE tsan_long "$@"
elif [ -n "$program_label" ]; then
  targets="tests_tsan tests_tsan_long"
elif [ -n "$sanitize" ]; then
  targets="tests/core/all tests/client/all"
  # What was not built; and a package for others, whose build knows nothing of sanitizers.
  set -- -E '_NOT_BUILT$|^client_package$|^perceptronctl_usage$' -LE 'style|bench|fuzz|integration|deploy|proto|clients' "$@"
fi
if [ -n "$targets" ]; then
  # shellcheck disable=SC2086  # a list of words
  cmake --build "$build" -j "$jobs" --target $targets
else
  set -- -E '_NOT_BUILT$|^style_thread_safety$' "$@"
fi

say "test"
for label in $labels; do set -- -L "$label" "$@"; done
# A sanitizer's first report is a failure, and says where.
export TSAN_OPTIONS="suppressions=$root/tests/tsan.supp halt_on_error=1 second_deadlock_stack=1 ignore_noninstrumented_modules=1 ${TSAN_OPTIONS:-}"
export UBSAN_OPTIONS="halt_on_error=1 print_stacktrace=1 ${UBSAN_OPTIONS:-}"
export ASAN_OPTIONS="detect_stack_use_after_return=1 ${ASAN_OPTIONS:-}"
# Many wait for a server or a scrape: two more than processors fit.
export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-$((jobs + 2))}"
# Journals are in memory where it has room and may hold programs: the tests kill processes, not the machine, and would
# wait for the disk's syncs half of their time.
scratch=
trap 'rm -rf "$scratch"' EXIT
if [ -z "${TMPDIR:-}" ] && [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 2097152 ] 2>/dev/null; then
  scratch=$(mktemp -d /dev/shm/perceptrond-tests.XXXXXX)
  printf '#!/bin/sh\n' >"$scratch/program"
  chmod +x "$scratch/program"
  if "$scratch/program" 2>/dev/null; then export TMPDIR="$scratch"; fi
fi
ctest --test-dir "$build" --output-on-failure --no-tests=error "$@"
