#!/bin/sh
# Builds the fuzzers with clang, libFuzzer and the address and undefined-behaviour sanitizers into build-asan/, and runs
# each for this many seconds (default 60) from its corpus. What they find lies in build-asan/findings/.
# With --runs each makes this many inputs, the same ones each time: a change then fails for what it changed, not by luck. Where
# an input takes tens of milliseconds it makes a tenth; forms_fuzz, which learns each input in every form, a fiftieth. Where
# what covers new code depends on threads or addresses, too, inputs come from inputs.py.
# Usage: sh tests/fuzz/run.sh [SECONDS | --runs N]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build-asan
if [ "${1:-}" = --runs ]; then
  how_long="-runs=${2:?--runs takes a number} -seed=1"
  slow="-runs=$(($2 / 10)) -seed=1"
  slowest="-runs=$(($2 / 50)) -seed=1"
else
  how_long="-max_total_time=${1:-60}"
  slow=$how_long
  slowest=$how_long
fi

sh "$root/deploy/install_packages.sh" build test
# As tests/run.sh --asan does: what both need is compiled once.
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER=clang++-14 -DCMAKE_BUILD_TYPE=Debug \
  -DPERCEPTROND_SANITIZE=address,undefined -DPERCEPTROND_FUZZ=ON -DPERCEPTROND_TESTS=ON
fuzzers="access_fuzz fleet_fuzz format_fuzz forms_fuzz journal_fuzz learner_fuzz methods_fuzz nested_fuzz page_fuzz rows_fuzz storage_fuzz text_fuzz"
# shellcheck disable=SC2086  # a list of words
cmake --build "$build" --target $fuzzers

# What the sanitizers report is a failure.
export UBSAN_OPTIONS="halt_on_error=1 print_stacktrace=1 ${UBSAN_OPTIONS:-}"
mkdir -p "$build/findings"
inputs=
found=$build/corpus
if [ "${1:-}" = --runs ]; then
  inputs=$build/inputs
  # Without what earlier runs have found.
  found=$build/corpus-of-runs
  rm -rf "$found"
  rm -rf "$inputs"
  for made in "fleet_fuzz $2" "methods_fuzz $(($2 / 10))" "storage_fuzz $(($2 / 10))"; do
    python3 "$root/tests/fuzz/inputs.py" "$root/tests/fuzz/corpus/${made% *}" "$inputs/${made% *}" "${made#* }"
  done
fi
printf '\n== fuzzing; the logs are %s/*_fuzz.log\n' "$build"
# $JOBS at once, or as many as there are processors. Findings of its own go to the first corpus folder, the project's seeds are only
# read.
# shellcheck disable=SC2016,SC2086  # the inner shell expands its own; a list of words
printf '%s\n' $fuzzers | xargs -P "${JOBS:-$(nproc)}" -I '{}' sh -eu -c '
  mkdir -p "$8/$2"
  log=$1/$2.log
  how_long=$4
  inputs=
  case $2 in
    forms_fuzz) how_long=$6 ;;
    # A call to the server may take long. What libFuzzer does after each input takes several times as long as the input: its
    # entropic schedule looks for each feature among all that are rare, and since threads of the server allocate, it would
    # run the input again and look for leaks, which the end of the process does. Less freed memory makes fewer page faults.
    methods_fuzz)
      how_long="$5 -timeout=600 -entropic=0 -detect_leaks=0"
      export ASAN_OPTIONS="quarantine_size_mb=16 ${ASAN_OPTIONS:-}"
      ;;
    # The window of zstd takes up to 128 MiB.
    format_fuzz) how_long="$5 -malloc_limit_mb=160" ;;
    access_fuzz | learner_fuzz | rows_fuzz) how_long=$5 ;;
  esac
  if [ -n "$7" ] && [ -d "$7/$2" ]; then
    how_long="$how_long -runs=0"
    inputs=$7/$2
  fi
  if "$1/bin/$2" -timeout=300 -rss_limit_mb=2048 -malloc_limit_mb=64 -max_len=4096 -print_final_stats=1 $how_long \
    -artifact_prefix="$1/findings/$2-" "$8/$2" "$3/tests/fuzz/corpus/$2" ${inputs:+"$inputs"} >"$log" 2>&1; then
    printf "%s: %s inputs\n" "$2" "$(sed -n "s/^stat::number_of_executed_units: *//p" "$log")"
  else
    cat "$log"
    printf "%s: failed\n" "$2"
    exit 1
  fi
' fuzz "$build" '{}' "$root" "$how_long" "$slow" "$slowest" "$inputs" "$found"
