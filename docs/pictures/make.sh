#!/bin/sh
# Makes the pictures of the documents, with the build in build/ and the data in deploy/data.
#   sh docs/pictures/make.sh [DIRECTORY]     (default: docs/pictures)
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$root/docs/pictures}
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT

"$root/build/bin/perceptrond" --address "unix:$work/socket" --metrics-address off --journal memory --log-level error &
server=$!
ctl() { "$root/build/bin/perceptronctl" --server "unix:$work/socket" "$@"; }
sh "$root/client/python/build.sh" "$work/python" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
plot() { PYTHONPATH="$work/python" /usr/bin/python3 -B -m perceptrond.plot --server "unix:$work/socket" "$@"; }
tries=0
until ctl health > "$work/health" 2>&1; do
  tries=$((tries + 1))
  if [ "$tries" -eq 20 ] || ! kill -0 "$server"; then cat "$work/health" >&2; exit 1; fi
done

# Digits and capital letters of the first 400 messages.
LC_ALL=C awk -F '\t' 'NR == 1 { print "label,digits,capitals"; next }
  NR > 401 { exit }
  { print $1 "," gsub(/[0-9]/, "", $2) "," gsub(/[A-Z]/, "", $2) }' "$root/deploy/data/sms_spam.tsv" > "$work/sms.csv"
ctl create sms --named --labels ham,spam --learner averaged-perceptron > /dev/null
ctl learn sms "$work/sms.csv" --label-column label --passes 10 > /dev/null
plot sms "$work/sms.csv" --label-column label --x digits --y capitals --x-range -3 42 --y-range -3 45 \
  --title 'Spam by its digits and capitals' -o "$out/boundary.svg"

printf '1 1:-1 2:-1\n1 1:1 2:1\n-1 1:-1 2:1\n-1 1:1 2:-1\n' > "$work/xor.svm"
ctl create xor --dimension 2 --polynomial 2 --interactions-only > /dev/null
ctl learn xor "$work/xor.svm" --index-base 1 --until-converged > /dev/null
plot xor --title 'XOR, with the product of its inputs' -o "$out/xor.svg"

# Twenty drinks of each kind, around a centre each.
awk 'function noise() { seed = seed * 16807 % 2147483647; return seed / 2147483647 - 0.5 }
  BEGIN {
    seed = 7; kinds = split("tea rum gin", kind); split("2 -1.5 -1", sweet); split("0 2 -2", strong)
    print "kind,sweet,strong"
    for (n = 0; n < 60; ++n) {
      k = n % kinds + 1; x = y = 0
      for (i = 0; i < 4; ++i) { x += noise(); y += noise() }
      printf "%s,%.3f,%.3f\n", kind[k], sweet[k] + 1.3 * x, strong[k] + 1.3 * y
    }
  }' > "$work/drinks.csv"
ctl create drinks --named --labels tea,rum,gin --classes 3 > /dev/null
ctl learn drinks "$work/drinks.csv" --label-column kind --until-converged > /dev/null
plot drinks "$work/drinks.csv" --label-column kind --x sweet --y strong --title 'Drinks of three kinds' \
  -o "$out/regions.svg"

printf '%s\n' '-1 1:0 2:0' '-1 2:1' '-1 1:1' '1 1:1 2:1' > "$work/and.svm"
ctl create and --dimension 2 --labels off,on --store-sample 4 > /dev/null
ctl learn and "$work/and.svm" --index-base 1 --until-converged > /dev/null
plot and --separator --title 'AND' -o "$out/and.svg"
plot and --what weight-space --title 'AND: the weights' -o "$out/weights.svg"

printf 'label,x\n1,1\n1,2\n-1,3\n-1,4\n' > "$work/line.csv"
ctl create line --named > /dev/null
ctl learn line "$work/line.csv" --label-column label --until-converged > /dev/null
plot line "$work/line.csv" --label-column label --title 'Four examples on a line' -o "$out/line.svg"
plot line "$work/line.csv" --label-column label --what weight-space --title 'The same in weight space' -o "$out/line-weights.svg"

tail -n +2 "$root/deploy/data/sms_spam.tsv" > "$work/all.tsv"
ctl create spam --text --labels ham,spam > /dev/null
ctl learn spam "$work/all.tsv" --format text --until-converged > /dev/null
plot spam --what learning-curve --by examples --log --title 'Learning to tell spam' -o "$out/curves.svg"
