import { StoreError } from '../api/errors.js';

/** Version 1 is the schema file of the first release. SQLite and PostgreSQL have the same versions. */
export interface Migration {
	readonly version: number;
	readonly name: string;
	readonly sql: string;
}

export function versionOf(migrations: readonly Migration[]): number {
	return Math.max(...migrations.map(({ version }) => version));
}

export function newerSchema(name: string, found: number, known: number): StoreError {
	return new StoreError(
		'newer_schema',
		`${name} has schema ${found}, but this mailctl knows only ${known} (databases from before the first release cannot be read)`,
	);
}
