#!/bin/sh
# Each fault of a fleet several times, each program in a network namespace of its own, the degraded modes, the death of a
# server that writes thousands of models, and hand-overs, on what is built in build/; prints a table. Needs root.
#   sh run.sh [ROUNDS]     (default: 10)
set -eu

root=$(cd "$(dirname "$0")/../../.." && pwd)
fleet=$root/tests/integration/fleet
client=$root/build/client/python
sh "$root/client/python/build.sh" "$client"
export PYTHONPATH="$fleet:$root/tests/deploy:$client"
/usr/bin/python3 -B "$fleet/degraded_test.py" "$root/build/bin/perceptrond" "$root/build/lib/libperceptrond_wall_clock.so"
/usr/bin/python3 -B "$fleet/many_models_test.py" "$root/build/bin/perceptrond"
/usr/bin/python3 -B "$fleet/hand_over_test.py" "$root/build/bin/perceptrond"
unshare --net --mount /usr/bin/python3 -B "$fleet/fault_rounds_test.py" "$root/build/bin/perceptrond" --long --namespaces \
  --rounds "${1:-10}"
