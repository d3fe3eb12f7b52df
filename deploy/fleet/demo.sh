#!/bin/sh
# A fleet that goes on learning while its writer and PostgreSQL's primary are killed, in one command. See --help.
set -eu

usage() {
  cat <<'END'
Usage: sh deploy/fleet/demo.sh

Starts PostgreSQL with two quorum standbys, three perceptronds and HAProxy on free ports of 127.0.0.1. A producer sends
text messages through HAProxy, on one stream that resumes by itself. Meanwhile the writer is killed, then PostgreSQL's
primary, and a standby is promoted. At the end each server must have counted each message once, and have
the weights, bit for bit, of one server that learned the same messages alone; else the exit code is 1. Takes about a
minute and leaves nothing behind.

The model is a logistic regression, which updates on every message, and no acknowledged update is lost. (A perceptron
does not update on correct messages. After a kill its counts may lack those of the last second.)

For Debian 12, as root or an ordinary user. Needs: apt-get install postgresql haproxy curl
Runs perceptrond and perceptronctl from the directory PERCEPTROND_BIN, or from the PATH.
END
}

begin=$(date +%s)
# Seconds after which a step has failed. The longest takes five on an idle machine.
limit=120
say() { printf '%3d s  %s\n' $(($(date +%s) - begin)) "$*"; }
# fail WHAT WHAT-TO-DO
fail() {
  printf 'demo: %s\n  %s\n' "$1" "$2" >&2
  exit 1
}

case ${1:-} in
  '') ;;
  --help | -h) usage; exit 0 ;;
  *) printf 'demo: unknown option %s\n\n' "$1" >&2; usage >&2; exit 2 ;;
esac

here=$(cd "$(dirname "$0")" && pwd)
data=$(dirname "$here")/data/sms_spam.tsv
postgresql=/usr/lib/postgresql/15/bin
PATH=${PERCEPTROND_BIN:+$(cd "$PERCEPTROND_BIN" && pwd):}$PATH:/usr/sbin
for program in perceptrond perceptronctl; do
  command -v $program >/dev/null || fail "$program is not on the PATH." "Build it with sh deploy/quickstart.sh, then set PERCEPTROND_BIN=build/bin."
done
for program in $postgresql/postgres $postgresql/psql haproxy curl; do
  command -v "$program" >/dev/null || fail "$program is missing." "On Debian 12: apt-get install postgresql haproxy curl"
done
# The caller's settings and proxies are not for this fleet.
for name in $(env | sed -n 's/^\(PERCEPTROND_[A-Z_]*\|PERCEPTRONCTL_[A-Z_]*\|PG[A-Z]*\|[A-Za-z]*_\(proxy\|PROXY\)\)=.*/\1/p'); do unset "$name"; done
export LC_ALL=C PGCONNECT_TIMEOUT=30

# ---- Processes ----

work='' producer=''
# children PROCESS
children() { grep -ls "^PPid:.$1\$" /proc/[0-9]*/status | tr -dc '0-9\n'; }
# shellcheck disable=SC2046,SC2317  # a list of numbers; called by the trap
clean_up() {
  code=$?
  trap '' INT TERM HUP PIPE
  set +e
  if [ -z "$work" ]; then exit "$code"; fi
  if [ "$code" -gt 0 ] && [ "$code" -lt 128 ]; then tail -n 3 "$work"/*.log >&2 2>/dev/null; fi
  kill -KILL $(children $$) 2>/dev/null
  wait
  # The other processes of a PostgreSQL end soon after its postmaster. Its shared memory stays: postmaster.pid has the number.
  for directory in "$work"/postgres?; do
    deadline=$(($(date +%s) + limit))
    while readlink /proc/[0-9]*/cwd | grep -qxF "$directory" && [ "$(date +%s)" -lt $deadline ]; do sleep 0.1; done
    if [ -s "$directory/postmaster.pid" ]; then ipcrm -m "$(awk 'NR == 7 { print $2 }' "$directory/postmaster.pid")" 2>/dev/null; fi
  done
  rm -rf "$work"
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP PIPE

# start NAME COMMAND...: in the background; its process is $NAME, its output is in NAME.log
start() {
  name=$1
  shift
  "$@" </dev/null >>"$work/$name.log" 2>&1 &
  eval "$name=\$!"
}
# crash PROCESS: with its children, as when a machine fails
crash() {
  kill -STOP "$1"
  # shellcheck disable=SC2046  # a list of numbers
  kill -KILL $(children "$1") "$1" 2>/dev/null || :
  wait "$1" 2>/dev/null || :
}
# await WHAT COMMAND...: repeats the command until it succeeds, unless the producer or what was started last has ended
await() {
  what=$1
  deadline=$(($(date +%s) + limit))
  shift
  until "$@"; do
    if ! kill -0 ${producer:-$!} $! 2>/dev/null || [ "$(date +%s)" -ge $deadline ] 2>/dev/null; then
      fail "Not reached: $what." "The last lines of all logs follow."
    fi
    sleep 0.1
  done
}

umask 077
cd "${TMPDIR:-/tmp}"
work=$(mktemp -d "$PWD/perceptrond-demo.XXXXXX")
cd /
as=''
if [ "$(id -u)" -eq 0 ]; then
  # PostgreSQL refuses root.
  as='setpriv --reuid=postgres --regid=postgres --init-groups'
  chmod 711 "$work"
  $as test -x "$work" || fail "User postgres may not enter $work." "Set TMPDIR to a directory that it may enter."
fi
# Twenty ports that nobody uses, below those that the system hands out. Each run begins its search elsewhere.
port=$(awk -v block=$$ '
  { sub(/.*:/, "", $2); used[$2] }
  END {
    do {
      first = 20000 + 20 * (block++ % 500)
      for (i = 0; i < 20 && !(sprintf("%04X", first + i) in used); ) ++i
    } while (i < 20)
    print first
  }' /proc/net/tcp*)
balancer=127.0.0.1:$port
# Of servers 1, 2 and 3 of the fleet, and of 0, which learns alone.
address() { echo 127.0.0.1:$((port + 1 + $1)); }
metrics_address() { echo 127.0.0.1:$((port + 5 + $1)); }
fleet_address() { echo 127.0.0.1:$((port + 9 + $1)); }
database_port() { echo $((port + 13 + $1)); }

# ---- PostgreSQL, with the settings of compose.yaml, but without TLS ----

say "$(perceptrond --version)"
PGPASSWORD=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export PGPASSWORD
hosts="host=127.0.0.1,127.0.0.1,127.0.0.1 port=$(database_port 1),$(database_port 2),$(database_port 3)"
primary="$hosts user=postgres target_session_attrs=read-write"
{
  cat "$here/postgresql/postgresql.conf"
  printf "%s\n" "hba_file = '$work/pg_hba.conf'" "listen_addresses = '127.0.0.1'" "unix_socket_directories = ''" 'ssl = off' 'dynamic_shared_memory_type = mmap'
} >"$work/postgresql.conf"
echo 'host all,replication all 127.0.0.1/32 scram-sha-256' >"$work/pg_hba.conf"
chmod 644 "$work/postgresql.conf" "$work/pg_hba.conf"
install -d -m 700 ${as:+-o postgres} "$work/postgres1" "$work/postgres2" "$work/postgres3"
# ask DATABASE SQL
ask() { $postgresql/psql -XAtqw -h 127.0.0.1 -p "$(database_port "$1")" -U postgres -c "$2" 2>>"$work/psql.log"; }
# replies DATABASE SQL ANSWER
replies() { [ "$(ask "$1" "$2")" = "$3" ]; }
start_database() {
  # shellcheck disable=SC2086  # a list of words
  start "postgres$1" $as $postgresql/postgres -D "$work/postgres$1" -c config_file="$work/postgresql.conf" -c port="$(database_port "$1")" \
    -c primary_conninfo="$primary application_name=postgres$1"
  await "postgres$1 accepts connections" replies "$1" 'SELECT 1' 1
}
standbys="SELECT count(*) FROM pg_stat_replication WHERE (state, sync_state) = ('streaming', 'quorum')"

$as $postgresql/initdb --data-checksums --no-sync --auth=trust --username=postgres --encoding=UTF8 --locale=C.UTF-8 -D "$work/postgres1" >"$work/initdb.log" 2>&1
$as $postgresql/postgres --single -D "$work/postgres1" postgres >>"$work/initdb.log" 2>&1 <<END
ALTER ROLE postgres PASSWORD '$PGPASSWORD'
CREATE ROLE perceptrond LOGIN PASSWORD '$PGPASSWORD'
CREATE DATABASE perceptrond OWNER perceptrond
END
start_database 1
for i in 2 3; do
  $as $postgresql/pg_basebackup --no-sync --checkpoint=fast -d "$primary" -D "$work/postgres$i" >"$work/pg_basebackup.log" 2>&1
  $as touch "$work/postgres$i/standby.signal"
  start_database $i
done
await "both standbys follow" replies 1 "$standbys" 2
say "PostgreSQL runs: postgres1 is the primary, postgres2 and postgres3 are quorum standbys"

# ---- Servers, balancer and producer ----

# start_server NUMBER FLAGS...
start_server() {
  number=$1
  shift
  start "server$number" perceptrond --address "$(address "$number")" --metrics-address "$(metrics_address "$number")" "$@"
  await "server $number serves" serves "$(address "$number")"
}
start_member() {
  start_server "$1" --journal "postgres://perceptrond@/perceptrond?$(echo "$hosts" | tr ' ' '&')" --durability replicated --fleet-address "$(fleet_address "$1")"
}
serves() { perceptronctl health --server "$1" --timeout 5 >/dev/null 2>>"$work/perceptronctl.log"; }
# With small steps, margins stay small, and each message changes weights by more than they are rounded.
create() {
  perceptronctl create spam --server "$1" --text --words 1 --labels ham,spam --no-bias --learner logistic-regression --step-size 0.01 >/dev/null
}
# Sends all messages again and again, until it gets SIGTERM. Every 16 messages wait for a commit.
start_producer() {
  perceptronctl learn spam "$data" --server "$balancer" --format text --skip-lines 1 --passes 1000000 --producer demo --start-offset 0 \
    --batch 16 --window 4 --timeout $limit -q -o json </dev/null >"$work/producer.json" 2>>"$work/producer.log" &
  producer=$!
}
# metric SERVER NAME
metric() { curl -s --max-time $limit "http://$(metrics_address "$1")/metrics" | sed -n "s/^perceptrond_model_$2{model_name=\"spam\"} //p"; }
# has_counted SERVER MESSAGES
has_counted() { [ "$(metric "$1" examples_total)" -ge "$2" ] 2>/dev/null; }
# find_writer SERVER...: sets writer
find_writer() {
  for writer; do
    if [ "$(metric "$writer" written)" = 1 ]; then return; fi
  done
  return 1
}
# await_learning SERVER...: one of these becomes the writer, and learns
await_learning() {
  await "the model has a writer" find_writer "$@"
  counted=$(metric "$writer" examples_total)
  await "server $writer learns" has_counted "$writer" $((counted + 1000))
}

for i in 1 2 3; do start_member $i; done
sed "s/perceptrond1:7600/$(address 1)/; s/perceptrond2:7600/$(address 2)/; s/perceptrond3:7600/$(address 3)/" "$here/haproxy.cfg" >"$work/haproxy.cfg"
export BALANCER_ADDRESS="$balancer"
start haproxy haproxy -db -f "$work/haproxy.cfg"
await "HAProxy passes calls on" serves "$balancer"
say "Three servers have it as their journal, with HAProxy in front"
create "$balancer"
start_producer
await_learning 1 2 3
# The first writer hands over to servers that came later.
await "each message is learned once" has_counted "$writer" "$(wc -l <"$data")"
await "the model has a writer" find_writer 1 2 3
say "A producer sends messages through HAProxy; server $writer is the writer"

# ---- What is killed ----

killed=$writer
eval "crash \$server$killed"
say "Killed server $killed, the writer, with SIGKILL"
# shellcheck disable=SC2046  # two numbers
await_learning $(echo 1 2 3 | tr -d "$killed")
say "Server $writer took over after $counted messages, and learns"
start_member "$killed"
say "Server $killed is back"

# shellcheck disable=SC2154  # start sets it
crash "$postgres1"
say "Killed postgres1, the primary, all its processes with SIGKILL"
for i in 2 3; do
  await "postgres$i receives nothing more" replies $i "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'" 0
done
received=$(ask 3 'SELECT pg_last_wal_receive_lsn()')
behind=$(ask 2 "SELECT pg_last_wal_receive_lsn() < '$received'")
if [ "$behind" = t ]; then promoted=3 other=2; else promoted=2 other=3; fi
replies $promoted 'SELECT pg_promote()' t || fail "postgres$promoted was not promoted." "The last lines of all logs follow."
say "Promoted postgres$promoted, which has received no less than postgres$other"
await "postgres$other follows postgres$promoted" replies $promoted "$standbys" 1
await_learning 1 2 3
say "postgres$other follows it, and server $writer goes on learning"

# ---- Counts and bits ----

# field NAME: of the producer's summary
field() { tr ',' '\n' <"$work/producer.json" | sed -n "s/.*\"$1\":\"\([0-9]*\)\".*/\1/p"; }
end_producer() {
  kill -TERM "$producer" 2>/dev/null && { wait "$producer" || [ $? -eq 130 ]; } &&
    sent=$(field rows) && acknowledged=$(($(field acknowledgedThrough) + 1)) && [ "$sent" -eq "$acknowledged" ]
}
end_producer || fail "The producer did not end well." "The last lines of all logs follow."
producer=''
say "Ended the producer. One server alone learns the same $sent messages"
awk -v sent="$sent" 'NR > 1 { messages[NR - 2] = $0 } END { for (i = 0; i < sent; ++i) print messages[i % (NR - 1)] }' "$data" >"$work/sent.tsv"
start_server 0 --journal memory
create "$(address 0)"
perceptronctl learn spam "$work/sent.tsv" --server "$(address 0)" --format text --producer demo -q
sed 1d "$data" | cut -f 2 | tr -s ' ' '\n' | sort -u | sed '/^$/d' >"$work/words"
words=$(wc -l <"$work/words")

row() { printf '       %-14s %9s %9s  %s\n' "$@"; }
row '' messages updates 'scores (SHA-256)'
row sent "$sent" '' ''
row acknowledged "$acknowledged" '' ''
equal=yes
for i in 0 1 2 3; do
  # Each word's score is of its weight in this server's own copy, with the nine digits that tell floats apart.
  perceptronctl predict spam "$work/words" --server "$(address $i)" --format text --min-revision "$sent" --timeout $limit -q -o json |
    sed -n 's/.*"scores":\[\([-0-9][^]]*\)\].*/\1/p' >"$work/scores$i"
  examples=$(metric $i examples_total) updates=$(metric $i updates_total)
  row "$([ $i = 0 ] && echo one alone || echo "server $i")" "$examples" "$updates" "$(sha256sum <"$work/scores$i" | cut -c 1-32)"
  [ "$examples $updates $(wc -l <"$work/scores$i")" = "$sent $sent $words" ] || equal=no
  cmp -s "$work/scores0" "$work/scores$i" || equal=no
done
[ $equal = yes ] || fail "The counts or the scores differ." "This is a fault: please report it with this output."
say "OK: nothing was lost, nothing was learned twice, and the scores of all $words words are equal, bit for bit"
