#!/bin/sh
# Each check of this folder finds what it is there to find: a small tree is clean, then gets one violation at a time.
#   sh checks_can_fail_test.sh CLANG-FORMAT CLANG++
set -eu

here=$(cd "$(dirname "$0")" && pwd)
format=$1
clang=$2
tree=$(mktemp -d "${TMPDIR:-/tmp}/perceptrond-style.XXXXXX")
trap 'rm -rf "$tree"' EXIT
cp "$here/../../.clang-format" "$tree"
for layer in core/sync core/vector core/features core/learner core/convergence core/journal core/model server client tests deploy/manual build; do
  mkdir -p "$tree/$layer"
done
cp "$here/../../core/sync/mutex.h" "$tree/core/sync/"
printf 'int f();\n' >"$tree/core/vector/a.cc"

planted=0
# finds WHAT CHECK... : the check passes on the clean tree, fails once FILE holds TEXT, and passes again without.
file=
plant() { file=$tree/$1; printf '%b' "$2" >"$file"; }
finds() {
  what=$1
  shift
  if "$@" >"$tree/said" 2>&1; then
    printf 'NOT FOUND: %s\n' "$what"
    exit 1
  fi
  rm "$file"
  if ! "$@" >"$tree/said" 2>&1; then
    cat "$tree/said"
    printf 'found although it is gone: %s\n' "$what"
    exit 1
  fi
  planted=$((planted + 1))
}

includes() {
  plant "$1" "#include $2\n"
  finds "$1 including $2" sh "$here/include_direction_test.sh" "$tree"
}
includes core/sync/b.h '"core/vector/row.h"'
includes core/vector/b.h '"core/features/mapper.h"'
includes core/features/b.cc '"core/learner/learner.h"'
includes core/learner/b.cc '"core/convergence/pass.h"'
includes core/convergence/b.cc '"core/features/mapper.h"'
includes core/journal/b.cc '"core/vector/row.h"'
includes core/journal/b.cc '"perceptron/v1/model.pb.h"'
includes core/model/b.cc '"server/server.h"'
includes core/model/b.cc '"perceptron/v1/model_service.grpc.pb.h"'
includes core/model/b.cc '<grpcpp/grpcpp.h>'
includes core/model/b.cc '<prometheus/counter.h>'
includes core/model/b.cc '<rocksdb/db.h>'
includes core/model/b.cc '"model.h"'
includes core/model/b.cc '<core/model/model.h>'
includes core/other.cc '<string>'
includes server/b.cc '"client/client.h"'
includes server/b.cc '<prometheus/counter.h>'
includes server/b.cc '<spdlog/spdlog.h>'
includes client/b.cc '"core/learner/learner.h"'
includes deploy/manual/b.cc '"core/learner/learner.h"'
includes server/b.cc '"deploy/manual/command.h"'
includes client/b.cc '"core/model/model.h"'
includes client/b.cc '"server/server.h"'
includes client/b.cc '"perceptron/storage/v1/journal.pb.h"'
includes client/b.cc '"inference/inference_service.pb.h"'
includes core/model/b.cc '"inference/inference_service.pb.h"'

plant core/vector/b.cc 'int  f( );\n'
finds "a file out of format" sh "$here/format_test.sh" "$tree" "$format"

# $1 is the planted script's own.
# shellcheck disable=SC2016
plant deploy/b.sh '#!/bin/sh\nrm $1\n'
printf '#!/bin/sh\ntrue\n' >"$tree/deploy/a.sh"
finds "a script that shellcheck warns of" sh "$here/shell_test.sh" "$tree"

locks() {
  printf '#include "core/sync/mutex.h"\nstruct A {\n  perceptrond::Mutex mutex_;\n  int a_ ABSL_GUARDED_BY(mutex_) = 0;\n  void F() { %s }\n};\n' "$1" >"$tree/core/model/c.cc"
  printf '[{"directory": "%s", "file": "%s", "command": "c++ -std=c++20 -I%s -c x"},
           {"directory": "%s", "file": "%s", "command": "c++ -std=c++20 -I%s -c x"}]\n' \
    "$tree" "$tree/core/model/c.cc" "$tree" "$tree" "$tree/core/vector/a.cc" "$tree" >"$tree/build/compile_commands.json"
  python3 "$here/thread_safety_test.py" "$tree" "$tree/build" "$clang"
}
locks 'perceptrond::MutexLock lock(&mutex_); ++a_;' >/dev/null
if locks '++a_;' >/dev/null; then echo "NOT FOUND: a guarded member changed without its lock"; exit 1; fi
if locks 'perceptrond::ReaderMutexLock lock(&mutex_); ++a_;' >/dev/null; then echo "NOT FOUND: a guarded member changed under a shared lock"; exit 1; fi
if locks 'mutex_.Lock();' >/dev/null; then echo "NOT FOUND: a lock that is never let go"; exit 1; fi
planted=$((planted + 3))

documents() {
  plant "$2" "$3"
  finds "$1" python3 "$here/documents_test.py" "$tree"
}
mkdir -p "$tree/docs"
printf '# A page\n\n## Its part\n' >"$tree/docs/page.md"
documents "a link to no file" docs/b.md '[text](other.md)\n'
documents "a link to no heading" docs/b.md '[text](page.md#its-end)\n'
# shellcheck disable=SC2016  # a document's own marks
documents "a path to no file" docs/b.md 'See `core/vector/other.h`.\n'
documents "a source that names no document" core/vector/b.h '// See docs/other.md.\n'
documents "a source that names no heading" core/vector/b.h '// See docs/page.md#its-end.\n'
documents "a long line of prose" docs/b.md "$(printf 'word %.0s' $(seq 30))\n"
documents "a row that lost a cell" docs/b.md 'a | b\n---|---\none | two\nthree\n'
documents "a long README.md" README.md "$(printf 'line\\n%.0s' $(seq 200))"
documents "too many words" docs/b.md "$(printf 'word\\n%.0s' $(seq 20001))"

echo "$planted violations planted, all found"
