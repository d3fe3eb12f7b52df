#!/bin/sh
# From nothing to a spam filter that survives kill -9, in one command. See --help.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
data=$root/deploy/data/sms_spam.tsv
server=$root/build/bin/perceptrond
ctl=$root/build/bin/perceptronctl
model=spam
max_passes=50

usage() {
  cat <<END
Usage: sh deploy/quickstart.sh [--keep] [--port N] [--help]

Builds perceptrond into build/, trains it to recognize spam among text messages, predicts messages
that it has not seen, kills it with SIGKILL, restarts it and checks that nothing is lost.
For Debian 12, as root or with sudo; installs what is missing from deploy/packages.txt.

  --keep     leave the server running, and say what to try next
  --port N   serve gRPC on 127.0.0.1:N and metrics on N + 1 (default: free ports)
  --help     this text

Exits with 0 only if every check passed.
END
}

keep=no
port=0
while [ $# -gt 0 ]; do
  case $1 in
    --keep) keep=yes ;;
    --port)
      port=${2:-}
      case $port in
        '' | *[!0-9]*) printf 'quickstart: --port needs a number, as in --port 7600\n' >&2; exit 2 ;;
      esac
      if [ "$port" -lt 1 ] || [ "$port" -gt 65534 ]; then
        printf 'quickstart: --port must be from 1 to 65534\n' >&2
        exit 2
      fi
      shift
      ;;
    --help | -h) usage; exit 0 ;;
    *) printf 'quickstart: unknown option %s\n\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

# ---- Output ----

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
  bold=$(printf '\033[1m') dim=$(printf '\033[2m') green=$(printf '\033[32m') red=$(printf '\033[31m') plain=$(printf '\033[0m')
else
  bold='' dim='' green='' red='' plain=''
fi

number=0
step() {
  number=$((number + 1))
  printf '\n%s%d  %s%s\n' "$bold" "$number" "$*" "$plain"
}
say() { printf '   %s\n' "$*"; }
quiet() { printf '   %s%s%s\n' "$dim" "$*" "$plain"; }
holds() { printf '   %s✓%s %s\n' "$green" "$plain" "$*"; }
indent() { sed 's/^/   /'; }
# fail WHAT WHAT-TO-DO
fail() {
  printf '\n%s✗ %s%s\n  %s\n' "$red" "$1" "$plain" "$2" >&2
  exit 1
}

# ---- Cleaning up ----

work=
server_pid=
failed=yes
# shellcheck disable=SC2317  # called by the trap
clean_up() {
  code=$?
  trap '' INT TERM
  if [ "$keep" = no ] || [ "$failed" = yes ]; then
    if [ -n "$server_pid" ]; then
      kill "$server_pid" 2>/dev/null || :
      wait "$server_pid" 2>/dev/null || :
    fi
    if [ "$failed" = no ] || [ "$code" = 130 ]; then
      if [ -n "$work" ]; then rm -rf "$work"; fi
    elif [ -n "$work" ]; then
      printf '  Files to look at: %s\n' "$work" >&2
    fi
  fi
  exit "$code"
}
trap clean_up EXIT
trap 'printf "\n  Interrupted.\n" >&2; exit 130' INT
trap 'exit 143' TERM

# ---- The server ----

log_of_server() { tail -n 5 "$work/server.log" | indent >&2; }

# start_server ADDRESS METRICS-ADDRESS
start_server() {
  : >"$work/server.log"
  "$server" --address "$1" --metrics-address "$2" --data-dir "$work/store" </dev/null >"$work/server.log" 2>&1 &
  server_pid=$!
  # This line has the ports; the health service is asked after it.
  while ! grep -q ' info serving ' "$work/server.log"; do
    if ! kill -0 "$server_pid" 2>/dev/null; then
      log_of_server
      fail "The server did not start." "Its log is above. Is the port in use? Choose another with --port."
    fi
    sleep 0.05
  done
  address=$(sed -n 's/.* info serving .*address=\([^ ]*\).*/\1/p' "$work/server.log")
  metrics=127.0.0.1:$(sed -n 's/.* info serving .*metrics_port=\([0-9]*\).*/\1/p' "$work/server.log")
  PERCEPTROND_SERVER=$address
  export PERCEPTROND_SERVER
  if ! "$ctl" health --timeout 10 >"$work/health" 2>&1; then
    indent <"$work/health" >&2
    log_of_server
    fail "The server does not answer on $address." "Its log is above."
  fi
}

# call DOING ARGUMENTS...: perceptronctl, its standard output into $work/out
call() {
  doing=$1
  shift
  if ! "$ctl" "$@" >"$work/out" 2>"$work/err"; then
    indent <"$work/err" >&2
    fail "$doing failed." "perceptronctl's message is above; the server's log: $work/server.log"
  fi
}

# field NAME FILE: the first number or word of that name in a JSON text
field() { tr -d ' \n' <"$2" | tr ',{}' '[\n*]' | sed -n "s/^\"$1\":\"\\{0,1\\}\\([^\"]*\\).*/\\1/p" | head -n 1; }
percent() { awk -v ratio="$1" 'BEGIN { printf "%.2f %%", 100 * ratio }'; }

# ---- The steps ----

printf '%sperceptrond quickstart%s: learn from a stream, predict, survive a crash\n' "$bold" "$plain"

step "Installing what is missing from deploy/packages.txt"
sh "$root/deploy/install_packages.sh" build quickstart 2>&1 | indent
# A pipe hides the exit code: ask again, which costs nothing when all is there.
sh "$root/deploy/install_packages.sh" build quickstart >/dev/null 2>&1 || fail "Packages are missing." "The message above says what to do."
holds "all packages are there"

step "Building into build/ (Release; minutes the first time, seconds after that)"
work=$(mktemp -d "${TMPDIR:-/tmp}/perceptrond-quickstart.XXXXXX")
jobs=$(nproc)
# A compiler that reads gRPC's headers takes up to 1.5 GiB.
fits=$(awk '/^MemAvailable/ { print int($2 / 1572864) }' /proc/meminfo)
if [ "${fits:-1}" -lt "$jobs" ]; then jobs=${fits:-1}; fi
if [ "$jobs" -lt 1 ]; then jobs=1; fi
set -- -S "$root" -B "$root/build" -DCMAKE_BUILD_TYPE=Release
if [ ! -f "$root/build/CMakeCache.txt" ]; then set -- "$@" -G Ninja -DPERCEPTROND_TESTS=OFF; fi
if ! cmake "$@" >"$work/configure.log" 2>&1; then
  tail -n 15 "$work/configure.log" | indent >&2
  fail "CMake failed." "If build/ is from another try, remove it and run this again."
fi
# On a terminal the builder shows its own progress.
if [ -t 1 ]; then
  cmake --build "$root/build" --target perceptrond perceptronctl -j "$jobs" || fail "The build failed." "The compiler's message is above. If build/ is from another try, remove it and run this again."
elif ! cmake --build "$root/build" --target perceptrond perceptronctl -j "$jobs" >"$work/build.log" 2>&1; then
  tail -n 30 "$work/build.log" | indent >&2
  fail "The build failed." "The compiler's message is above; the whole log: $work/build.log"
fi
holds "$("$server" --version)"

step "Starting the server on an embedded store"
if [ "$port" = 0 ]; then
  start_server 127.0.0.1:0 127.0.0.1:0
else
  start_server "127.0.0.1:$port" "127.0.0.1:$((port + 1))"
fi
quiet "store and log: $work"
holds "$(cat "$work/health") on $address, metrics on http://$metrics/metrics"

step "Creating the model \"$model\": the server splits texts into words and pairs of words"
quiet "perceptronctl create $model --text --labels ham,spam"
call "Creating the model" create "$model" --text --labels ham,spam

tail -n +2 "$data" >"$work/all.tsv"
messages=$(wc -l <"$work/all.tsv")
training=$((messages * 8 / 10))
head -n "$training" "$work/all.tsv" >"$work/train.tsv"
tail -n +"$((training + 1))" "$work/all.tsv" >"$work/test.tsv"

step "Streaming the first $training of $messages real text messages, until a pass changes nothing"
quiet "perceptronctl learn $model train.tsv --format text --until-converged --passes $max_passes"
"$ctl" learn "$model" "$work/train.tsv" --format text --until-converged --passes "$max_passes" \
  --producer quickstart --start-offset 0 >"$work/learned" || [ $? -eq 5 ] || fail "Learning failed." "perceptronctl's message is above; the server's log: $work/server.log"
grep '^pass' "$work/learned" | indent
call "Reading the model" get "$model" -o json
mv "$work/out" "$work/model"
# The stored examples have a field "updates" too; the report is after them.
sed -n '/"report": {/,$p' "$work/model" >"$work/report"
examples=$(field examples "$work/report")
updates=$(field updates "$work/report")
if [ -z "$examples" ] || [ -z "$updates" ] || [ "$examples" -eq 0 ]; then
  fail "The model's report has no counters." "See: $work/model"
fi
revision=$(field revision "$work/model")
if [ "$(field converged "$work/report")" = true ]; then
  holds "converged: the last pass classified every message correctly and changed nothing"
else
  say "not converged in $max_passes passes: these words do not separate the messages, or not yet"
fi
if [ "$revision" -ne "$updates" ]; then fail "Revision $revision is not the $updates updates." "This is a bug; please report it with $work."; fi
holds "$examples evaluations, $updates updates: mistakes are the only writes"

step "Predicting the other $((messages - training)), which it has never seen"
quiet "perceptronctl predict $model test.tsv --format text"
call "Predicting" predict "$model" "$work/test.tsv" --format text --summary -o json
mv "$work/out" "$work/summary"
error=$(field errorRate "$work/summary")
majority=$(field majorityErrorRate "$work/summary")
if [ -z "$error" ] || [ -z "$majority" ]; then fail "The summary has no error rate." "See: $work/summary"; fi
say "error                              $(percent "$error")"
say "error of always predicting \"ham\"   $(percent "$majority")"
awk -v a="$error" -v b="$majority" 'BEGIN { exit !(a < b / 2) }' || fail "The error is not far below the majority's." "This is a bug; please report it."
holds "less than half the error of always predicting the most frequent label"

step "Looking at http://$metrics/metrics"
curl -fsS --max-time 10 "http://$metrics/metrics" >"$work/metrics" || fail "The metrics cannot be read." "The server's log: $work/server.log"
grep -E '^perceptrond_model_(examples_total|mistakes_total|updates_total|revision|progressive_error_ratio|journal_bytes)' "$work/metrics" | indent
grep -q "^perceptrond_model_updates_total{model_name=\"$model\"} $updates\$" "$work/metrics" || fail "The metrics do not show the $updates updates." "See: $work/metrics"
holds "the same $updates updates"

# observe INTO: revision, every weight, every prediction
observe() {
  mkdir -p "$work/$1"
  call "Reading the model" get "$model" --weights
  sed -n '/^revision:/p; /^weights:/,$p' "$work/out" >"$work/$1/weights"
  call "Predicting" predict "$model" "$work/test.tsv" --format text -o json
  mv "$work/out" "$work/$1/predictions"
}

step "Killing the server with SIGKILL and starting it again"
observe before
kill -KILL "$server_pid"
wait "$server_pid" 2>/dev/null || :
quiet "killed without shutdown or flush"
start_server "$address" "$metrics"
observe after
cmp -s "$work/before/weights" "$work/after/weights" || fail "The weights differ from before the crash." "Compare $work/before/weights and $work/after/weights, and please report it."
holds "revision $revision and all $(($(wc -l <"$work/after/weights") - 2)) weights are unchanged"
cmp -s "$work/before/predictions" "$work/after/predictions" || fail "The predictions differ from before the crash." "Compare $work/before/predictions and $work/after/predictions, and please report it."
holds "all $((messages - training)) predictions are unchanged, to the last digit of their scores"
# A producer that crashed does not know its position: it sends again from its first example.
call "Sending the first pass again" learn "$model" "$work/train.tsv" --format text --producer quickstart --start-offset 0 -o json
mv "$work/out" "$work/again"
if [ "$(field duplicates "$work/again")" != "$training" ] || [ "$(field updates "$work/again")" != 0 ]; then
  fail "Messages sent again were learned again." "See $work/again, and please report it."
fi
holds "sent again, all $training messages are duplicates: none is learned twice"

failed=no
if [ "$keep" = yes ]; then
  cat <<END

${bold}The server is still running.${plain} To try next:
   export PERCEPTROND_SERVER=$address PATH=$root/build/bin:\$PATH
   echo 'Congratulations! Call now to claim your free prize' | perceptronctl predict $model - --format text
   perceptronctl get $model
   perceptronctl watch $model
   curl -s http://$metrics/metrics | grep $model
To stop it:
   kill $server_pid && rm -r $work
END
else
  printf '\n%sAll checks passed.%s Run it with --keep to continue from here; README.md has the rest.\n' "$bold" "$plain"
fi
