#!/bin/sh
# Installs the packages of the given sections of deploy/packages.txt, those that are missing and whose command is.
#   sh deploy/install_packages.sh build test
set -eu

list=$(dirname "$0")/packages.txt

say() { printf '%s\n' "$*" >&2; }

if [ $# -eq 0 ]; then
  say "usage: sh deploy/install_packages.sh SECTION...   (sections: $(sed -n 's/^\[\(.*\)\]$/\1/p' "$list" | tr '\n' ' '))"
  exit 2
fi

packages_of() {
  awk -v want="[$1]" '/^\[/ { on = ($0 == want); next } on && NF && !/^#/ { print $1 ":" $2 }' "$list"
}

is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Whether the command that does as well is there; none does for most.
has_command() {
  [ -n "$1" ] && command -v "$1" >/dev/null
}

missing=
for section in "$@"; do
  packages=$(packages_of "$section")
  if [ -z "$packages" ]; then
    say "deploy/packages.txt has no section [$section]"
    exit 2
  fi
  for package in $packages; do
    is_installed "${package%%:*}" || has_command "${package#*:}" || missing="$missing ${package%%:*}"
  done
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
  say "These packages are missing, and there is no apt-get to install them:$missing"
  say "perceptrond is built against the libraries of Debian 12; elsewhere install their like by hand."
  exit 1
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    say "These packages are missing, and installing them takes root:$missing"
    say "Run this as root:  apt-get install --no-install-recommends$missing"
    exit 1
  fi
  as_root=sudo
fi

log=$(mktemp "${TMPDIR:-/tmp}/perceptrond-apt.XXXXXX")
run_apt() {
  # shellcheck disable=SC2086  # as_root is one word or none
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null >>"$log" 2>&1
}
say "installing:$missing"
# A package list that is there and current enough saves the update. (missing is a list of words.)
# shellcheck disable=SC2086
if ! run_apt install --no-install-recommends $missing; then
  if ! { run_apt update && run_apt install --no-install-recommends $missing; }; then
    tail -n 5 "$log" >&2
    say "apt-get failed. Is this Debian 12, and can it reach its mirror? The whole log: $log"
    exit 1
  fi
fi
rm -f "$log"
