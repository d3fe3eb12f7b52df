#!/bin/sh
# Makes the Python modules of perceptrond's protos: messages (_pb2) and stubs (_pb2_grpc).
#   sh generate.sh [DIRECTORY]      (default: generated, beside this script)
# Needs protoc and its plugin for Python, on Debian protobuf-compiler and protobuf-compiler-grpc. Then
#   export PYTHONPATH=DIRECTORY
set -eu

here=$(cd "$(dirname "$0")" && pwd)
protos=$here/../../proto
out=${1:-$here/generated}
if ! plugin=$(command -v grpc_python_plugin); then
  echo "generate.sh: there is no grpc_python_plugin: install protobuf-compiler-grpc" >&2
  exit 1
fi
mkdir -p "$out"
# Not the journal's records: they are no part of the API.
protoc --proto_path="$protos" --python_out="$out" --plugin=protoc-gen-grpc_python="$plugin" --grpc_python_out="$out" \
  "$protos"/google/rpc/*.proto "$protos"/perceptron/v1/*.proto
