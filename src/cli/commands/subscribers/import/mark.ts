/**
 * What is remembered of an import: which content the file had, what was asked, and where its rejects are. A session is
 * known by the first two together, so without this a changed file would look like one that was never begun.
 */
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { CommandContext } from '../../../context.js';
import { CliError } from '../../../errors.js';

export interface ImportMark {
	/** SHA-256 of the file; empty for standard input, which has no second time. */
	sha256: string;
	/** The job's key: list, content, columns and options. */
	key: string;
	/** Whole path of its rejects file; null where nothing is known of it. */
	rejects: string | null;
	/** It came to its end: what is asked for again begins anew, in the same rejects file. */
	hasEnded: boolean;
}

export interface MarkFile {
	/** Of the last run; null: there is none, or none that can be read. */
	read(): Promise<ImportMark | null>;
	/** Before the first row, and at the end. A folder that cannot be written costs this check later on, nothing else. */
	write(mark: ImportMark): Promise<void>;
}

/** Where the rows come from: a file by its path, or standard input under the name of a job. */
export type MarkedSource = { file: string } | { job: string };

/** The mark of this source for this list of this target. */
export async function openMark(cx: CommandContext, source: MarkedSource, listId: number): Promise<MarkFile> {
	const { target } = await cx.connection();
	const where = target.kind === 'local' ? target.url : target.baseUrl;
	const from = 'file' in source ? resolve(source.file) : ['job', source.job];
	const name = createHash('sha256')
		.update(JSON.stringify([from, listId, where]))
		.digest('hex');
	const path = join(cx.paths.imports, `${name.slice(0, 32)}.json`);
	return {
		read: () => readMark(path),
		write: async (mark) => {
			await mkdir(dirname(path), { recursive: true, mode: 0o700 })
				.then(() => writeFile(path, `${JSON.stringify(mark)}\n`, { mode: 0o600 }))
				.catch(() => undefined);
		},
	};
}

/**
 * Refuses to go on where the content or the options are not those of the run that stopped (exit 2). `name` is how the
 * source is called.
 */
export function assertSame(
	name: string,
	earlier: ImportMark | null,
	now: Pick<ImportMark, 'sha256' | 'key'>,
): void {
	if (earlier === null || earlier.hasEnded || earlier.key === now.key) return;
	throw earlier.sha256 === now.sha256 ? otherOptions(name) : changed(name);
}

async function readMark(path: string): Promise<ImportMark | null> {
	try {
		const found: unknown = JSON.parse(await readFile(path, 'utf8'));
		if (typeof found !== 'object' || found === null || !('sha256' in found) || !('key' in found)) return null;
		const rejects = 'rejects' in found && typeof found.rejects === 'string' ? found.rejects : null;
		const hasEnded = 'hasEnded' in found && found.hasEnded === true;
		return { sha256: String(found.sha256), key: String(found.key), rejects, hasEnded };
	} catch {
		return null;
	}
}

function changed(file: string): CliError {
	return new CliError('file_changed', 2, `${file} has changed since the import that stopped`, {
		hint: 'import it without --resume (and with another --rejects FILE): what is there already is found unchanged',
	});
}

function otherOptions(file: string): CliError {
	return new CliError('other_options', 2, `the import of ${file} that stopped had other columns or options`, {
		hint: 'repeat them as they were, or leave out --resume: what is there already is found unchanged',
	});
}
