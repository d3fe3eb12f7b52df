#!/bin/sh
# No script of the project gives shellcheck anything to say.
#   sh shell_test.sh [ROOT [SHELLCHECK]]
set -eu

root=${1:-$(dirname "$0")/../..}
shellcheck=${2:-shellcheck}
cd "$root"
files=$(find deploy tests client -name node_modules -prune -o -name '*.sh' -print | sort)
if [ -f .ci/run ]; then files="$files .ci/run"; fi
if [ -d docs ]; then files="$files $(find docs -name '*.sh' | sort)"; fi
# shellcheck disable=SC2086  # a list of words
"$shellcheck" $files
echo "$(echo "$files" | wc -w) scripts are clean"
