#!/bin/sh
# Installs the client package into a prefix of its own and builds the consumer against it.
# Usage: package_test.sh CMAKE BUILD_DIR CONSUMER_DIR CXX_COMPILER
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" --install "$2" --prefix "$work/prefix" --component client >/dev/null
"$1" -S "$3" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$4" >/dev/null
"$1" --build "$work/build"
test -x "$work/build/consumer"
