#!/bin/sh
# Sourced by the scripts that run tests: what of the caller's environment would decide a test's outcome.

# Servers of this machine are called directly. What installs packages still finds the proxy.
export no_proxy="localhost,127.0.0.1,::1${no_proxy:+,$no_proxy}"
export NO_PROXY="$no_proxy"
# Settings of the caller's are no settings of the servers and commands under test. What is left is read by the tests.
for setting in $(env | sed -n 's/^\(PERCEPTROND_[A-Z_]*\)=.*/\1/p'); do
  case $setting in
    PERCEPTROND_DATA | PERCEPTROND_ALL_* | PERCEPTROND_REPLAY_SEEDS) ;;
    *) unset "$setting" ;;
  esac
done
# Paths of sockets have at most 107 bytes, and commands name files without quotes.
case ${TMPDIR:-/tmp} in
  *[!A-Za-z0-9_./-]* | ????????????????????????????????????????????????????????????*)
    printf 'tests: TMPDIR is %s: set it to a path of fewer than 60 letters, digits, dots, dashes and underscores\n' "$TMPDIR" >&2
    exit 2
    ;;
esac
