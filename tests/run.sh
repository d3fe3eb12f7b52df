#!/bin/sh
# Installs, builds and runs the tests. tests/README.md says which, and when.
set -eu

usage() {
  cat <<'END'
Usage: sh tests/run.sh [--style | --asan | --tsan] [--nightly] [--label X]... [--no-install] [--jobs N] [-- CTEST-OPTIONS]

  (none)        builds into build/ (Release) and runs the fast suite
  --style       builds nothing; runs the checks of the source
  --asan        builds the tests labelled "asan" with AddressSanitizer and UndefinedBehaviorSanitizer into build-asan/, and
                runs them. Clang compiles both programs too, and analyses their locks
  --tsan        builds the tests labelled "tsan" with ThreadSanitizer into build-tsan/, and runs them
  --nightly     runs the tests labelled "nightly" instead of the others; with --asan or --tsan those labelled "asan_long" or "tsan_long" too
  --label X     only the tests labelled X (a regular expression); may be repeated
  --no-install  install no packages
  --jobs N      compilers, and tests, that may run at once (default: as many as fit)
  --            what follows goes to ctest, as in: -- -R Journal --repeat until-fail:20

The last lines are ctest's own. tests/nightly.sh runs everything that a release must pass.
END
}

root=$(cd "$(dirname "$0")/.." && pwd)
what=release
nightly=
labels=
install=yes
jobs=
while [ $# -gt 0 ]; do
  case $1 in
    --style | --asan | --tsan) what=${1#--} ;;
    --nightly) nightly=yes ;;
    --label) labels="$labels ${2:?--label takes a label}"; shift ;;
    --jobs) jobs=${2:?--jobs takes a number}; shift ;;
    --no-install) install=no ;;
    --help | -h) usage; exit 0 ;;
    --) shift; break ;;
    *) printf 'tests/run.sh: unknown option %s\n\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

. "$root/tests/environment.sh"

say() { printf '\n== %s\n' "$*"; }

if [ "$install" = yes ]; then
  say "packages"
  sh "$root/deploy/install_packages.sh" build test clients
fi

if [ -z "$jobs" ]; then
  # A compiler that reads gRPC's headers takes up to 1.5 GiB.
  jobs=$(nproc)
  fits=$(awk '/^MemAvailable/ { print int($2 / 1572864) }' /proc/meminfo)
  if [ "${fits:-1}" -lt "$jobs" ]; then jobs=${fits:-1}; fi
  if [ "$jobs" -lt 1 ]; then jobs=1; fi
fi

# configure BUILD CMAKE-OPTIONS...
configure() {
  build=$root/$1
  shift
  say "build into ${build#"$root"/}"
  if [ ! -f "$build/CMakeCache.txt" ]; then set -- -G Ninja "$@"; fi
  cmake -S "$root" -B "$build" -DPERCEPTROND_TESTS=ON "$@"
}
# What runs under a sanitizer, but not for every change, is labelled asan_long or tsan_long.
case $what in
  release | style) configure build -DCMAKE_BUILD_TYPE=Release ;;
  # tests/fuzz/run.sh builds the fuzzers in the same directory.
  asan) configure build-asan -DCMAKE_CXX_COMPILER=clang++-14 -DCMAKE_BUILD_TYPE=Debug \
    -DPERCEPTROND_SANITIZE=address,undefined -DPERCEPTROND_FUZZ=ON ;;
  tsan) configure build-tsan -DCMAKE_BUILD_TYPE=Debug -DPERCEPTROND_SANITIZE=thread ;;
esac
case $what${nightly:+-nightly} in
  release) targets=all; set -- -LE nightly "$@" ;;
  release-nightly) targets=all; set -- -L nightly "$@" ;;
  style*) targets=; labels="$labels style" ;;
  asan) targets="perceptrond perceptronctl tests_asan"; labels="$labels asan"; set -- -LE 'asan_long|nightly' "$@" ;;
  asan-nightly) targets="perceptrond perceptronctl tests_asan tests_asan_long"; labels="$labels asan" ;;
  tsan) targets=tests_tsan; labels="$labels tsan"; set -- -LE 'tsan_long|nightly' "$@" ;;
  tsan-nightly) targets="tests_tsan tests_tsan_long"; labels="$labels tsan" ;;
esac
if [ -n "$targets" ]; then
  # shellcheck disable=SC2086  # a list of words
  cmake --build "$build" -j "$jobs" --target $targets
fi

say "test"
for label in $labels; do set -- -L "$label" "$@"; done
# A sanitizer's first report is a failure, and says where.
export TSAN_OPTIONS="suppressions=$root/tests/tsan.supp halt_on_error=1 second_deadlock_stack=1 ignore_noninstrumented_modules=1 ${TSAN_OPTIONS:-}"
export UBSAN_OPTIONS="halt_on_error=1 print_stacktrace=1 ${UBSAN_OPTIONS:-}"
export ASAN_OPTIONS="detect_stack_use_after_return=1 ${ASAN_OPTIONS:-}"
# Many wait for a server or a scrape: two more than processors fit.
export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-$((jobs + 2))}"
# Journals are in memory where it has room and may hold programs: the tests kill processes, not the machine, and would
# wait for the disk's syncs half of their time.
scratch=
trap 'rm -rf "$scratch"' EXIT
if [ -z "${TMPDIR:-}" ] && [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 2097152 ] 2>/dev/null; then
  scratch=$(mktemp -d /dev/shm/perceptrond-tests.XXXXXX)
  # PostgreSQL refuses root, and its user has a directory within.
  chmod 711 "$scratch"
  printf '#!/bin/sh\n' >"$scratch/program"
  chmod +x "$scratch/program"
  if "$scratch/program" 2>/dev/null; then export TMPDIR="$scratch"; fi
fi
# No test depends on how long it takes: the limit, in seconds, only ends one that hangs.
ctest --test-dir "$build" --output-on-failure --no-tests=error --timeout 600 "$@"
