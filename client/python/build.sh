#!/bin/sh
# Builds the package into a directory, from which it can be imported without being installed:
#   sh build.sh DIRECTORY
#   export PYTHONPATH=DIRECTORY
# Needs setuptools, protoc and its plugin for Python; on Debian python3-setuptools, protobuf-compiler and
# protobuf-compiler-grpc.
set -eu

mkdir -p "${1:?usage: sh build.sh DIRECTORY}"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
rm -rf "$out/perceptrond"
/usr/bin/python3 -B setup.py --quiet build_py --force --build-lib "$out"
