import type { ImportBatch } from '../../../src/api/capabilities.js';
import type { CheckedBatch } from '../../../src/api/row-texts.js';
import type { SliceSize } from '../../../src/store/slices.js';
import { ImportLine } from '../../../src/store/sqlite/import-line.js';
import { newUuid, noon } from '../../contract/store/fixture.js';
import { memoryStore } from '../../support/memory-store.js';

export function startLine(size: SliceSize) {
	const store = memoryStore();
	const { core, writer } = store;
	const id = newUuid();
	core.createList({ input: { name: 'News', email_reason: 'r' }, now: noon });
	core.openImport({
		id,
		key: 'k',
		spec: { list_id: 1, on_conflict: 'update', reactivate: false },
		now: noon,
	});
	return {
		...store,
		line: new ImportLine(core, writer, size),
		put: (batch: ImportBatch | CheckedBatch) => ({ session: id, batch, now: noon }),
		command: (first: number, ...cells: string[]) => ({
			session: id,
			batch: { first, columns: ['email'], cells },
			now: noon,
		}),
	};
}
