/** The name of an import job: what has to be the same for a later run to go on where this one stood. */
import { createHash } from 'node:crypto';
import type { ImportSpec } from '../api/capabilities.js';
import type { Mapping } from '../cli/tabular/header.js';

export interface ImportIdentity {
	spec: ImportSpec;
	/** The file's SHA-256, or the name given by `--job` (stdin cannot be hashed beforehand). */
	source: { sha256: string } | { job: string };
	mapping: Mapping;
	/** As used, not as named: they decide which rows there are. */
	encoding: string;
	delimiter: string;
}

/** 64 hex digits. The size of batches is no part of it: rows are numbered, batches may be cut otherwise. */
export function importKey({ spec, source, mapping, encoding, delimiter }: ImportIdentity): string {
	const columns = mapping.columns.map(({ index, target }) => [index, target]);
	const from = 'sha256' in source ? ['sha256', source.sha256] : ['job', source.job];
	const parts = [spec.list_id, spec.on_conflict, spec.reactivate, from, columns, encoding, delimiter];
	return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}
