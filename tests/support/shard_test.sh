#!/bin/sh
# A shard that lacks its data is reported as skipped: it exits with 77, and with 0 where nothing was skipped.
# Usage: sh shard_test.sh PROGRAM   (one whose tests named *Digits* need a data set, and those named *Clouds* none)
set -eu
program=$1

# expect CODE FILTER
expect() {
  code=0
  GTEST_TOTAL_SHARDS=1 GTEST_SHARD_INDEX=0 PERCEPTROND_DATA=/nonexistent "$program" --gtest_brief=1 "--gtest_filter=$2" || code=$?
  if [ "$code" -ne "$1" ]; then
    echo "$program --gtest_filter=$2 exits with $code, not $1" >&2
    exit 1
  fi
}

expect 77 '*OnDigits*'
expect 77 '*OnDigits*:*OnClouds*'
expect 0 '*OnClouds*'
