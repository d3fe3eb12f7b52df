#!/bin/sh
# Messages and exit codes of perceptronctl without a server. Usage: usage_test.sh PERCEPTRONCTL
set -u
ctl=$1
failures=0

expect() {  # expect CODE PATTERN ARGUMENT...
  code=$1
  pattern=$2
  shift 2
  said=$("$ctl" "$@" 2>&1 </dev/null)
  got=$?
  if [ "$got" -ne "$code" ] || ! printf '%s' "$said" | grep -q -e "$pattern"; then
    echo "perceptronctl $*: exit $got, expected $code and \"$pattern\":"
    echo "$said"
    failures=1
  fi
}

expect 0 'perceptronctl [0-9]' --version
expect 0 'Examples:' --help
expect 0 'reconnecting included' --help
expect 0 '4 no answer within --timeout' --help
for command in create list get update delete freeze unfreeze learn predict explain draw watch health; do
  expect 0 'Example' "$command" --help
done
expect 2 'subcommand'
expect 2 'unknown subcommand frobnicate' frobnicate
expect 2 'hint: the server.s program has it: perceptrond migrate; ' migrate a b
expect 2 'hint: did you mean learn? ' lern x
expect 2 'hint: did you mean --passes? ' learn --pases 3 x f
expect 2 'hint: did you mean --passes? ' learn x f --pases=3
expect 2 'hint: did you mean --server? ' list --sever x
expect 0 '^--until-converged ended without convergence; 130' --help
expect 2 'give HOST:PORT of gRPC, as localhost:7601 (' list --server http://localhost:7601/metrics
expect 2 'give HOST:PORT of gRPC, as h:7600, and --tls' list --server grpcs://h:7600
expect 2 'NAME' get
expect 2 'summary excludes --ids' predict m f.svm --ids --summary
expect 2 'exactly one of' create m
expect 2 'excludes' create m --dimension 4 --named
expect 2 'text' list -o yaml
expect 2 'cannot open' create m --dimension 2 --start-weights /nonexistent
for number in -5 x 1.5; do
  expect 2 "create: --dimension: $number; expected a whole number from 0 on" create m --dimension "$number"
done
expect 2 'create: --dimension: 4294967296; expected a smaller number' create m --dimension 4294967296
expect 2 'create: --bias: x; expected a number' create m --dimension 2 --bias x
expect 2 'nothing to change' update m
for number in -1 1.5 x 9223372036854775808; do
  expect 2 "revision: $number is not a whole number from 0" rollback m --revision="$number"
  expect 2 "skip-lines: $number is not a whole number from 0" learn m f --skip-lines="$number"
done
# 0 does not mean "not given".
expect 2 'fourier.*not in range' create m --dimension 2 --fourier 0 --gamma 1
expect 2 'fourier.*not in range' create m --dimension 2 --fourier 1048577 --gamma 1
expect 2 'polynomial.*not in range' create m --dimension 2 --polynomial 0
expect 2 'polynomial.*not in range' create m --dimension 2 --polynomial 5
for products in a a: :b : a:b:c 'a:b,c' 'a:b,c:' a:b:c:d; do
  expect 2 'one colon between them, as user:page; several pairs are separated by commas' \
    create m --named --products "$products"
done
# An empty item is an error and does not shorten a list.
for list in ',' 'a,,b' 'a,b,' ',a'; do
  expect 2 'labels: "[ab,]*" has an empty item' create m --named --labels "$list"
  expect 2 'compose: "[ab,]*" has an empty item' create m --compose "$list"
done
expect 2 'compose :score: expected MODEL' create m --compose ':score'
expect 2 'products: "a:b," has an empty item' create m --named --products 'a:b,'
expect 2 'class-weights: "1,,5" has an empty item' create m --dimension 2 --class-weights '1,,5'
expect 2 'class-weights: "x" is not a number' create m --dimension 2 --class-weights '1,x'
expect 2 'classes.*not in range' create m --dimension 2 --classes 0
expect 2 'classes.*not in range' create m --dimension 2 --classes 1
expect 2 'must be within float32' draw m --x-range -1e39 1
# NaN and infinities are outside of every range.
for number in nan NaN inf -inf 0 1e400; do
  expect 2 "rate: $number is not a number from 0.001 to 1000000000" bench --rate="$number"
done
for number in nan inf; do
  for flag in seconds warmup mistakes invalid; do
    expect 2 "$flag: $number is not a number from" bench --"$flag" "$number"
  done
  expect 2 "timeout: $number is not a number from" list --timeout "$number"
  expect 2 "interval: $number is not a number from" watch m --interval "$number"
  expect 2 "gap: $number is not a number from" analyze m --gap "$number"
done
# Bytes that are not text reach neither gRPC nor the terminal.
expect 2 'not valid UTF-8: x\\xff' get "$(printf 'x\377')"
expect 2 'unknown subcommand \\x1b' "$(printf '\033[31m')"
# No server listens there; -o is accepted before and after the subcommand.
expect 1 'is perceptrond running there' --server unix:/nonexistent/socket --timeout 0.2 -o json list
expect 1 'is perceptrond running there' list --server unix:/nonexistent/socket --timeout 0.2 -o json
expect 1 'UNAVAILABLE' -q health --server unix:/nonexistent/socket --timeout 0.2
exit $failures
