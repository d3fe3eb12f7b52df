#!/bin/sh
# Runs an example client against a real server that is killed during the run. See --help.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
ctl=$root/build/bin/perceptronctl

usage() {
  cat <<END
Usage: sh client/example.sh python | asyncio | node

Builds perceptrond into build/, trains a spam filter with the example client of this language, kills the server with SIGKILL
during the run and restarts it, and compares the result with that of perceptronctl. For Debian 12, as root or with sudo;
installs missing packages of deploy/packages.txt.

Exits with 0 only if every check passed.
END
}

say() { printf '%s\n' "$*"; }
fail() {
  printf 'example.sh: %s\n' "$*" >&2
  exit 1
}

language=${1:-}
case $language in
  python) learn="/usr/bin/python3 $root/client/python/examples/learn.py" predict="/usr/bin/python3 $root/client/python/examples/predict.py" ;;
  asyncio) learn="/usr/bin/python3 $root/client/python/examples/learn_async.py" predict= ;;
  node) learn="node $root/client/node/examples/learn.mjs" predict="node $root/client/node/examples/predict.mjs" ;;
  --help | -h) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/perceptrond-example.XXXXXX")
server_pid=
# shellcheck disable=SC2317  # called by the trap
clean_up() {
  if [ -n "$server_pid" ]; then kill "$server_pid" 2>/dev/null || :; fi
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# quietly WHAT COMMAND...: its output is shown if it fails
quietly() {
  say "-- $1"
  what=$1
  shift
  "$@" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; fail "$what: this failed"; }
}

# start_server ADDRESS
start_server() {
  : >"$work/server.log"
  "$root/build/bin/perceptrond" --address "$1" --metrics-address off --data-dir "$work/store" </dev/null >"$work/server.log" 2>&1 &
  server_pid=$!
  while ! grep -q ' info serving ' "$work/server.log"; do
    kill -0 "$server_pid" 2>/dev/null || { cat "$work/server.log" >&2; fail "the server did not start"; }
    sleep 0.05
  done
  PERCEPTROND_SERVER=$(sed -n 's/.* info serving .*address=\([^ ]*\).*/\1/p' "$work/server.log")
  export PERCEPTROND_SERVER
}

quietly "packages" sh "$root/deploy/install_packages.sh" build clients
set -- -S "$root" -B "$root/build" -DCMAKE_BUILD_TYPE=Release
if [ ! -f "$root/build/CMakeCache.txt" ]; then set -- "$@" -G Ninja -DPERCEPTROND_TESTS=OFF; fi
quietly "building the server into build/ (minutes the first time)" cmake "$@"
quietly "building" cmake --build "$root/build" --target perceptrond perceptronctl -j "$(nproc)"
if [ "$language" = node ]; then
  quietly "npm ci" npm --prefix "$root/client/node" ci --omit=dev --ignore-scripts
else
  quietly "the package for Python" sh "$root/client/python/build.sh" "$work/modules"
  PYTHONPATH=$work/modules
  export PYTHONPATH PYTHONDONTWRITEBYTECODE=1
fi

tail -n +2 "$root/deploy/data/sms_spam.tsv" >"$work/all.tsv"
head -n 4459 "$work/all.tsv" >"$work/train.tsv"
tail -n +4460 "$work/all.tsv" >"$work/test.tsv"

start_server 127.0.0.1:0
say "-- the client learns 4459 messages until a pass changes nothing; the server is killed after the first, and started again"
# asyncio's program predicts as well.
set -- spam "$work/train.tsv" --text --labels ham,spam --producer train.tsv --until-converged
if [ "$language" = asyncio ]; then set -- "$@" --predict "$work/test.tsv"; fi
: >"$work/out"
# shellcheck disable=SC2086  # a command and its arguments
$learn "$@" >"$work/out" 2>"$work/err" &
client_pid=$!
until grep -q '^pass 1' "$work/out"; do
  kill -0 "$client_pid" 2>/dev/null || { cat "$work/err" >&2; fail "the client ended"; }
  sleep 0.01
done
kill -KILL "$server_pid"
wait "$server_pid" 2>/dev/null || :
start_server "$PERCEPTROND_SERVER"
wait "$client_pid" || { cat "$work/err" >&2; fail "the client failed"; }
cat "$work/err" "$work/out"
grep -q 'reconnecting' "$work/err" || fail "the client was done before the server was killed: nothing was shown"
# shellcheck disable=SC2086
if [ -n "$predict" ]; then $predict spam "$work/test.tsv" | tee -a "$work/out"; fi

say "-- the same by perceptronctl, in one go"
"$ctl" create reference --text --labels ham,spam >/dev/null
"$ctl" learn reference "$work/train.tsv" --format text --until-converged >/dev/null
for model in spam reference; do
  # All weights, to the last digit; and the examples that were evaluated. Names that one update adds are in any order.
  "$ctl" get "$model" --weights | sed -n '/^revision:/p; /^  examples:/s/, current streak.*//p; /^weights:/,$p' | sort >"$work/$model"
done
cmp -s "$work/spam" "$work/reference" || fail "the models differ"
say "all $(($(wc -l <"$work/spam") - 3)) weights are the same: nothing was lost, nothing was learned twice"
"$ctl" predict reference "$work/test.tsv" --format text --summary | sed -n 's/;.*//; 1,2p' >"$work/expected"
while read -r line; do grep -qF "$line" "$work/out" || fail "perceptronctl says: $line"; done <"$work/expected"
say "and so are the figures on the 1115 messages that neither has seen"
