/** Which tables are read in a thread of their own. */
import { stat } from 'node:fs/promises';
import type { ReadBundles } from '../../jobs/packed-bundles.js';
import type { TableOptions } from '../tabular/read-table.js';

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
	// What is no regular file (a pipe by name) is not there a second time.
	if (file === null || !file.isFile() || file.size < minBytes) return null;
	const { readInThread } = await import('../../threads/table-reader.js');
	return (request) => readInThread({ path, encoding, delimiter, request }, signal);
}
