/** Which tables are read in a thread of their own. */
import { stat } from 'node:fs/promises';
import type { ReadBundles } from '../../jobs/import-bundles.js';
import type { TableOptions } from '../../tables/read-table.js';

/** Below, the thread would take longer to start than the rows to read. */
const minBytes = 1024 * 1024;

/**
 * Null where the rows are better read in this thread. The options are those the table was opened with, so that the same
 * is found in it.
 */
export async function bundlesOf(
	path: string,
	{ encoding = 'auto', delimiter = 'auto' }: TableOptions,
	signal: AbortSignal,
): Promise<ReadBundles | null> {
	const file = await stat(path).catch(() => null);
	// Only a regular file can be opened a second time; a named pipe cannot.
	if (file === null || !file.isFile() || file.size < minBytes) return null;
	const { readInThread } = await import('../../threads/table-reader.js');
	return (request) => readInThread({ path, encoding, delimiter, request }, signal);
}
