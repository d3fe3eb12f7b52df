#!/bin/sh
# Builds Release and runs the benchmarks. What follows the options goes to them: see --help.
#   sh tests/bench/run.sh [--build-dir DIR] [--reps N] [--seconds S] [--filter NAME]
# On an otherwise idle machine. tests/bench/README.md says how to read the table.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build-bench
if [ "${1:-}" = --build-dir ]; then
  build=${2:?--build-dir takes a directory}
  shift 2
fi

# Standard output is for the figures alone.
{
  if [ -f "$build/CMakeCache.txt" ]; then
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DPERCEPTROND_TESTS=ON
  else
    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPERCEPTROND_TESTS=ON
  fi
  cmake --build "$build" --target bench
} >&2
exec "$build/bin/bench" "$@"
