#!/bin/sh
# Builds the server and soaks it for this many seconds (default 7200): producers, readers, changes of models, evictions and ends of
# the process at once, every answer checked. soak.py says what; other options are passed on to it: --seed N repeats a run.
# Usage: sh tests/soak/run.sh [SECONDS [OPTIONS]]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build
. "$root/tests/environment.sh"
seconds=${1:-7200}
[ $# -eq 0 ] || shift

sh "$root/deploy/install_packages.sh" build test clients
cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release
cmake --build "$build" --target perceptrond
sh "$root/client/python/build.sh" "$build/client/python"
PYTHONPATH=$root/tests/soak:$root/tests/deploy:$build/client/python \
  exec /usr/bin/python3 -B "$root/tests/soak/soak.py" "$build/bin/perceptrond" --seconds "$seconds" "$@"
