#!/bin/sh
# Installs the client package into a prefix of its own, builds the consumer against it, and runs it against the server.
# Usage: package_test.sh CMAKE BUILD_DIR CONSUMER_DIR CXX_COMPILER
set -eu
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT
"$1" --install "$2" --prefix "$work/prefix" --component development >/dev/null
"$1" -S "$3" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$4" >/dev/null
"$1" --build "$work/build"

address=unix:$work/socket
"$2/bin/perceptrond" --journal memory --address "$address" --metrics-address off &
server=$!
# Asks until it serves; gives up when the server is gone.
until "$2/bin/perceptronctl" --server "$address" --timeout 1 health >/dev/null 2>&1; do kill -0 "$server"; done
"$work/build/consumer" "$address"
