#!/bin/sh
# Every source file is as .clang-format has it.
#   sh format_test.sh [ROOT [CLANG-FORMAT]]
# To put it right: clang-format-14 -i FILE...
set -eu

root=${1:-$(dirname "$0")/../..}
format=${2:-clang-format-14}
cd "$root"
files=$(find core server client tests \( -name '*.cc' -o -name '*.h' \) | sort)
[ -n "$files" ] || { echo "no source files found"; exit 1; }
# shellcheck disable=SC2086  # a list of words
"$format" --dry-run -Werror $files
echo "$(echo "$files" | wc -l) files are formatted"
