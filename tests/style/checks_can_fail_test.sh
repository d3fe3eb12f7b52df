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
cp "$here/../../core/sync/mutex.h" "$here/../../core/sync/wait_timer.h" "$tree/core/sync/"
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

lines() { i=0; while [ $i -lt "$1" ]; do echo "$2"; i=$((i + 1)); done; }
# long FILE LINES: a file of that many lines
long() { plant "$1" ""; lines "$2" "// a line" >"$file"; }
long core/vector/b.cc 401
finds "a file of 401 lines" python3 "$here/file_length_test.py" "$tree"
long tests/b.py 401
finds "a test of 401 lines" python3 "$here/file_length_test.py" "$tree"
long deploy/b.json 401
finds "settings of 401 lines" python3 "$here/file_length_test.py" "$tree"
mkdir -p "$tree/docs/pictures"
long docs/pictures/b.svg 401
python3 "$here/file_length_test.py" "$tree" >"$tree/said" || { cat "$tree/said"; echo "a drawn picture is found to be too long"; exit 1; }
rm "$file"

printf '[{"directory": "%s", "file": "%s"}]\n' "$tree" "$tree/core/vector/a.cc" >"$tree/build/compile_commands.json"
plant core/vector/b.cc 'int g();\n'
finds "a file in no target" python3 -B "$here/targets_test.py" "$tree" "$tree/build"

# class FILE METHODS: of a class with that many public methods, and others that do not count
class() {
  plant "$1" ""
  {
    printf 'class A {\n public:\n  A();\n  ~A();\n  A& operator=(const A&) = delete;\n  std::function<void(int)> callback;\n'
    lines "$2" '  virtual int F(std::function<void(int)> f = {}) const { if (true) { f(1); } return 0; }'
    printf ' private:\n  void G();\n};\n'
  } >"$file"
}
class core/model/a.h 20
python3 "$here/public_methods_test.py" "$tree" >"$tree/said" || { cat "$tree/said"; echo "20 public methods are found to be too many"; exit 1; }
class core/model/b.h 21
finds "a class of 21 public methods" python3 "$here/public_methods_test.py" "$tree"
rm "$tree/core/model/a.h"

# words FILE TEXT: a word that must not return, listed as it would be in words.txt
printf 'name | Cut | TakePending\npart | heaviest | top | heaviest_of_all\npart | takes? in | add\ntext | so many | this many\ntext | behind | after | behind a proxy\n' >"$tree/words.txt"
words() {
  plant "$1" "$2"
  finds "$1 saying '$2'" python3 "$here/words_test.py" "$tree" "$tree/words.txt"
}
words core/model/b.cc 'void Cut();\n'
words core/model/b.cc 'int kHeaviestRow = 0;\n'
words core/model/heaviest_b.cc 'int b;\n'
words core/model/b.cc '// At most so\n// many rows.\n'
words client/b.md 'Now so\nmany rows.\n'
words tests/b.py 'print("so many")\n'
for suffix in py sh mjs js md yml yaml html css cmake in json svg txt man bash zsh fish service; do
  words "deploy/b.$suffix" 'At most so many rows.\n'
done
words deploy/postinst 'echo "so many"\n'
words core/model/b.cc 'void AnalyzeTakesInTheRow();\n'
words tests/b.py 'heaviest_row = 1\n'
words tests/b.py 'def Cut(): pass\n'
# shellcheck disable=SC2016  # JavaScript's own marks
words server/b.js 'const heaviestRow = `${1}`;\n'
words server/b.mjs 'function takesIn() {}\n'
words server/b.cc 'return "behind the row";\n'
printf '#include "core/model/cut.h"\n// Shortcuts, cut behind a proxy; TakePending.\nint shortcut;\n' >"$tree/core/model/d.cc"
printf '"""Cut."""\nheaviest_of_all = "Cut"  # Cut\n' >"$tree/tests/d.py"
# shellcheck disable=SC2016  # JavaScript's own marks
printf '// Cut\nconst a = `${1} Cut`; /* Cut */ const b = "heaviestRow";\n' >"$tree/server/d.js"
python3 "$here/words_test.py" "$tree" "$tree/words.txt" >"$tree/said" || { cat "$tree/said"; echo "found where it is allowed"; exit 1; }
rm "$tree/core/model/d.cc" "$tree/tests/d.py" "$tree/server/d.js"
mkdir -p "$tree/plain/core" && printf 'int f();\n' >"$tree/plain/core/a.cc"
python3 "$here/words_test.py" "$tree/plain" >"$tree/said" || { cat "$tree/said"; echo "words.txt cannot be read"; exit 1; }

locks() {
  printf '#include "core/sync/mutex.h"\nstruct A {\n  perceptrond::Mutex mutex_;\n  int a_ ABSL_GUARDED_BY(mutex_) = 0;\n  void F() { %s }\n};\n' "$1" >"$tree/core/model/c.cc"
  printf '[{"directory": "%s", "file": "%s", "command": "c++ -std=c++20 -I%s -c x"},
           {"directory": "%s", "file": "%s", "command": "c++ -std=c++20 -I%s -c x"}]\n' \
    "$tree" "$tree/core/model/c.cc" "$tree" "$tree" "$tree/core/vector/a.cc" "$tree" >"$tree/build/compile_commands.json"
  python3 -B "$here/thread_safety_test.py" "$tree" "$tree/build" "$clang"
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
documents "a row after its table" docs/b.md 'a | b\n---|---\none | two\n\nthree | four\n'
documents "a long README.md" README.md "$(printf 'line\\n%.0s' $(seq 200))"
documents "too many words" docs/b.md "$(printf 'word\\n%.0s' $(seq 21801))"

echo "$planted violations planted, all found"
