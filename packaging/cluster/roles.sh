#!/bin/bash
# PostgreSQL's image runs this once on a new database: it creates the roles and the database, and lets the replica connect.
set -eu
psql -v ON_ERROR_STOP=1 -U "${POSTGRES_USER:-postgres}" -d postgres \
	-v mailctl="$MAILCTL_PASSWORD" -v replication="$REPLICATION_PASSWORD" <<'SQL'
SET password_encryption = 'scram-sha-256';
CREATE ROLE mailctl LOGIN PASSWORD :'mailctl';
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'replication';
CREATE DATABASE mail OWNER mailctl;
SQL
echo 'host replication replicator all scram-sha-256' >> "$PGDATA/pg_hba.conf"
