#!/bin/bash
# Run once by the image of PostgreSQL, on a new database: the roles, and what may connect.
set -eu
psql -v ON_ERROR_STOP=1 -U "${POSTGRES_USER:-postgres}" -d postgres \
	-v mailctl="$MAILCTL_PASSWORD" -v replication="$REPLICATION_PASSWORD" <<'SQL'
SET password_encryption = 'scram-sha-256';
CREATE ROLE mailctl LOGIN PASSWORD :'mailctl';
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'replication';
CREATE DATABASE mail OWNER mailctl;
SQL
echo 'host replication replicator all scram-sha-256' >> "$PGDATA/pg_hba.conf"
