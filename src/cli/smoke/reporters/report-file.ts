/** `--report-file`: refused before the checks run when it cannot be written, and there whole or not at all. */
import { randomBytes } from 'node:crypto';
import { access, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemReason } from '../../../api/errors.js';
import { refusalOf } from '../../../tables/output-file.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { unwritableHint } from '../../frame/exit.js';

/** `W_OK` of POSIX: may be written. */
const writable = 2;

/** Throws `UsageError` for a folder that is missing or closed, and for a path that is a folder itself. */
export async function assertWritable(path: string): Promise<void> {
	const folder = dirname(path);
	try {
		await access(folder, writable);
	} catch (cause) {
		const why = refusalOf(cause, path)?.why ?? systemReason(cause);
		const hint = unwritableHint(path, 'name a file in another folder');
		throw new UsageError(`--report-file ${path} cannot be written: ${why}`, {
			...(hint !== null && { hint }),
			cause,
		});
	}
	const found = await stat(path).catch(() => null);
	if (found?.isDirectory() === true) throw new UsageError(`--report-file ${path} is a folder`);
}

/** Through a file beside it and a rename. Throws exit 74 when the disk refuses. */
export async function writeReport(path: string, text: string): Promise<void> {
	const found = await stat(path).catch(() => null);
	// A pipe or a device (/dev/stderr) is written to; renaming something over it would replace it.
	if (found !== null && !found.isFile()) return writeFile(path, text);
	const partial = `${path}.${randomBytes(4).toString('hex')}.part`;
	try {
		await writeFile(partial, text, { flag: 'wx' });
		await rename(partial, path);
	} catch (cause) {
		await rm(partial, { force: true });
		const why = cause instanceof Error ? cause.message : String(cause);
		throw new CliError('disk', 74, `the report could not be written to ${path}: ${why}`, { cause });
	}
}
