#!/bin/sh
# Starts PostgreSQL as POSTGRES_NAME, one of postgres1, postgres2 and postgres3. At its first start the one that is PRIMARY makes the
# database, and the others copy it. A standby follows whichever of the three is the primary.
#   FLEET_PASSWORD    of the role perceptrond, which owns the database perceptrond
#   PGPASSWORD        of the role replicator
set -eu
umask 077
root=${POSTGRES_ROOT:-/srv/postgresql}
data=$root/data
conninfo="user=replicator application_name=$POSTGRES_NAME sslmode=verify-full sslrootcert=/run/secrets/postgresql-ca.pem"

# PostgreSQL refuses a key that others may read, as they may that of the secret.
install -m 600 /run/secrets/postgresql.key /tmp/postgresql.key

if [ ! -e "$data" ]; then
  # What an interrupted first start left.
  rm -rf "$data.new"
  if [ "$POSTGRES_NAME" = "$PRIMARY" ]; then
    initdb --data-checksums --pgdata="$data.new" --username=postgres --encoding=UTF8 --locale=C.UTF-8
    postgres --single -D "$data.new" postgres <<END
CREATE ROLE replicator REPLICATION LOGIN PASSWORD '$PGPASSWORD'
CREATE ROLE perceptrond LOGIN PASSWORD '$FLEET_PASSWORD'
CREATE DATABASE perceptrond OWNER perceptrond
END
  else
    pg_basebackup --pgdata="$data.new" --dbname="host=$PRIMARY $conninfo" --checkpoint=fast
    touch "$data.new/standby.signal"
  fi
  mv "$data.new" "$data"
fi

exec postgres -D "$data" -c config_file=/etc/postgresql/postgresql.conf -c listen_addresses="$POSTGRES_NAME" \
  -c primary_conninfo="host=postgres1,postgres2,postgres3 target_session_attrs=read-write $conninfo"
