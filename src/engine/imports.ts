import type { ImportBatch, Imports } from '../api/capabilities.js';
import { ApiError, notFound } from '../api/errors.js';
import { texts } from '../api/schema/texts.js';
import type { ImportAck } from '../store/store.js';
import { type EngineContext, found, refuse, type StoreContext } from './context.js';

const maxBatchChars = 4 * 1024 * 1024;
const maxBatchRows = 100_000;
const plainColumns = new Set(['email', 'name', 'is_active', 'disable_reason', 'meta']);

export function createImports(context: StoreContext & Pick<EngineContext, 'newId'>): Imports {
	const { clock, newId } = context;
	const { writes } = context.store;
	return {
		open: async (key, spec) => {
			const session = found(await writes.openImport({ id: newId(), key, spec, now: clock.now() }));
			if (session === 'conflict')
				throw new ApiError('conflict', 'This import key is in use with other options.');
			return session;
		},
		put: async (id, batch) => {
			assertBatch(batch);
			return acknowledged(await writes.putImportBatch({ session: id, batch, now: clock.now() }));
		},
		putChecked: async (id, batch) =>
			acknowledged(await writes.putImportBatch({ session: id, batch, now: clock.now() })),
		finish: async (id) => found(await writes.finishImport({ session: id, now: clock.now() })),
	};
}

function acknowledged(outcome: ImportAck) {
	switch (outcome.kind) {
		case 'acknowledged':
			return outcome.ack;
		case 'gap':
			throw new ApiError('conflict', `The next row of this import is ${outcome.position}.`);
		case 'not_found':
			throw notFound();
		case 'list_gone':
			throw new ApiError('not_found', 'The list of this import was deleted.');
	}
}

function assertBatch({ first, columns, cells }: ImportBatch): void {
	if (!Number.isSafeInteger(first) || first < 0) refuse('first', texts.integer);
	const unknown = columns.find((column) => !plainColumns.has(column) && !column.startsWith('meta.'));
	if (unknown !== undefined) refuse('columns', `Unknown column: ${unknown}.`);
	if (!columns.includes('email')) refuse('columns', 'The column "email" is required.');
	if (new Set(columns).size !== columns.length) refuse('columns', 'A column is named twice.');
	if (cells.length % columns.length !== 0) refuse('cells', 'The last row is not complete.');
	if (cells.length > maxBatchRows * columns.length)
		throw new ApiError('too_large', `A batch holds at most ${maxBatchRows} rows.`);
	const size = cells.reduce((sum, cell) => sum + (cell?.length ?? 0), 0);
	if (size > maxBatchChars) throw new ApiError('too_large', 'A batch holds at most 4 MiB.');
}
