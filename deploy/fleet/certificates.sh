#!/bin/sh
# Makes what the fleet of compose.yaml needs, in a directory that only you can enter: an authority for the servers, which the fleet
# asks of them; another for PostgreSQL; a certificate of each for a year; and passwords for PostgreSQL's roles.
#   sh deploy/fleet/certificates.sh [DIRECTORY]        # default: certificates, beside this file
# What is there already stays. The containers read the keys as another user, so the directory alone protects them.
set -eu
# The containers' user reads them, whatever the caller's mask is.
umask 022

directory=${1:-$(dirname "$0")/certificates}
mkdir -p "$directory"
chmod 700 "$directory"
cd "$directory"

# authority NAME
authority() {
  if [ -e "$1.pem" ]; then return; fi
  openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/CN=$1" -keyout "$1.key" -out "$1.new" 2>openssl.log ||
    { cat openssl.log >&2; exit 1; }
  mv "$1.new" "$1.pem"
}

# certificate NAME AUTHORITY DNS-NAMES
certificate() {
  if [ -e "$1.pem" ]; then return; fi
  printf 'subjectAltName=%s\n' "$3" >"$1.ext"
  { openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr" &&
    openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -days 365 -extfile "$1.ext" -out "$1.new"; } 2>openssl.log ||
    { cat openssl.log >&2; exit 1; }
  mv "$1.new" "$1.pem"
  rm "$1.csr" "$1.ext"
  chmod 644 "$1.key"
}

authority fleet-ca
certificate fleet fleet-ca DNS:perceptrond
authority postgresql-ca
certificate postgresql postgresql-ca DNS:postgres1,DNS:postgres2,DNS:postgres3
rm -f openssl.log

if [ ! -e perceptrond.env ]; then
  password=$(openssl rand -hex 32)
  printf 'FLEET_PASSWORD=%s\nPGPASSWORD=%s\n' "$password" "$(openssl rand -hex 32)" >postgresql.env
  printf 'PGPASSWORD=%s\n' "$password" >perceptrond.env
fi
