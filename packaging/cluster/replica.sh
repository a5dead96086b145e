#!/bin/bash
# Copies the database at the first start, then follows it.
set -eu
: "${PGDATA:=/var/lib/postgresql/data}"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	pg_basebackup -h "${PRIMARY:-database}" -U replicator -D "$PGDATA" -R --checkpoint=fast
	chmod 700 "$PGDATA"
fi
exec postgres -D "$PGDATA" "$@"
