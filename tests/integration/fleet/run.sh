#!/bin/sh
# Each fault of a fleet several times, on what is built in build/.
#   sh run.sh [ROUNDS [OPTION]...]     (default: 10; options of faults_test.py)
set -eu

rounds=${1:-10}
[ $# -eq 0 ] || shift
root=$(cd "$(dirname "$0")/../../.." && pwd)
fleet=$root/tests/integration/fleet
client=$root/build/client/python
sh "$root/client/python/build.sh" "$client"
. "$root/tests/environment.sh"
export PYTHONPATH="$fleet:$root/tests/deploy:$client"
/usr/bin/python3 -B "$fleet/faults_test.py" "$root/build/bin/perceptrond" --rounds "$rounds" "$@"
