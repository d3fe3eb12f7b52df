#!/bin/sh
# Each fault of a fleet several times, on what is built in build/.
#   sh run.sh [ROUNDS]     (default: 10)
set -eu

root=$(cd "$(dirname "$0")/../../.." && pwd)
fleet=$root/tests/integration/fleet
client=$root/build/client/python
sh "$root/client/python/build.sh" "$client"
. "$root/tests/environment.sh"
export PYTHONPATH="$fleet:$root/tests/deploy:$client"
/usr/bin/python3 -B "$fleet/faults_test.py" "$root/build/bin/perceptrond" --rounds "${1:-10}"
