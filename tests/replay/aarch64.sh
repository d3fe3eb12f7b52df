#!/bin/sh
# Compiles the core for AArch64 with Debian's cross compiler, and runs replay_test.py there under qemu: a journal that is recorded
# here must be replayed to the same bits. Takes some minutes, packages from Debian, and root to install two of them; not in CI.
# Everything else goes to a directory of its own (default: a temporary one). gRPC, RocksDB and the solver are not needed.
# Usage: sh tests/replay/aarch64.sh [DIRECTORY]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build
directory=${1:-$(mktemp -d)}
mkdir -p "$directory/apt/lists/partial" "$directory/apt/cache/archives/partial" "$directory/sysroot" "$directory/proto" "$directory/objects"

if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
  apt-get install -y --no-install-recommends g++-aarch64-linux-gnu qemu-user
fi
cmake --build "$build" --target replay

# Lists of another architecture that this machine's own do not see.
private() {
  apt-get -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$directory/apt" -o Dir::Cache="$directory/apt/cache" \
    -o Dir::State::status=/dev/null "$@"
}
private update
(cd "$directory/apt" && private download libprotobuf-dev libprotobuf32 libabsl-dev libhwy-dev libicu-dev libicu72 libxxhash-dev libxxhash0 zlib1g-dev zlib1g)
for package in "$directory"/apt/*.deb; do dpkg -x "$package" "$directory/sysroot"; done

cd "$root/proto"
protoc --cpp_out="$directory/proto" google/rpc/*.proto perceptron/v1/*.proto perceptron/storage/v1/*.proto
cd "$root"
# The folder's name is part of the object's: names repeat.
# shellcheck disable=SC2016  # the inner shell expands its own
{
  find core/vector core/features core/learner core/settings core/error core/memory core/ledger core/model -name '*.cc'
  find core/convergence core/journal -maxdepth 1 -name '*.cc'
  printf '%s\n' tests/replay/replay.cc
  find "$directory/proto" -name '*.pb.cc'
} | xargs -P "$(nproc)" -I '{}' sh -eu -c '
  object=$1/objects/$(echo "$2" | tr / _).o
  # As CMakeLists.txt has it: no contraction. Highway: its headers are of every architecture.
  aarch64-linux-gnu-g++ -std=c++20 -O2 -ffp-contract=off -w -DHWY_IS_DEBUG_BUILD=0 -I. -I"$1/proto" -isystem "$1/sysroot/usr/include" \
    -c "$2" -o "$object"
' compile "$directory" '{}'

# Only what the program uses is taken from the archive, so that nothing of the solver is missed.
rm -f "$directory/core.a"
aarch64-linux-gnu-ar rc "$directory/core.a" "$directory"/objects/*.o
libraries=$directory/sysroot/usr/lib/aarch64-linux-gnu
aarch64-linux-gnu-g++ -static -o "$directory/replay" "$directory/objects/tests_replay_replay.cc.o" "$directory/core.a" \
  "$libraries/libprotobuf.a" "$libraries/libxxhash.a" "$libraries/libz.a" "$libraries/libicuuc.a" "$libraries/libicudata.a" -Wl,--start-group "$libraries"/libabsl_*.a -Wl,--end-group -pthread

"$build/bin/replay" "$("$build/bin/replay" units | head -n 1)" record "$directory/journal" >/dev/null
python3 "$root/tests/replay/replay_test.py" --journal "$directory/journal" "$directory/replay" qemu-aarch64
