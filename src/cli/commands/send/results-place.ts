/** Where `--results` may be written: never over what a send reads, and over no file but one of the same job. */
import { open, stat } from 'node:fs/promises';
import type { Mailings } from '../../../api/capabilities.js';
import type { Uuid } from '../../../api/records.js';
import { UsageError } from '../../errors.js';
import { TableError } from '../../tabular/finding.js';
import { createOutputFile } from '../../tabular/output-file.js';
import type { SendOptions } from './options.js';
import { resultColumns } from './results.js';

/** What is known before anything is staged. */
export interface ResultsOf {
	/** Paths of what this send reads. */
	inputs: readonly string[];
	/** The job's mailing, if it was begun before; asked only when there is a file of that name. */
	mailing(): Promise<Uuid | null>;
}

/**
 * Refuses before anything is sent: afterwards nobody could be told what became of it. An empty file, a pipe and a
 * device are written to, and so is what a link leads to. Throws `UsageError`.
 */
export async function assertResults(path: string | undefined, of: ResultsOf): Promise<void> {
	if (path === undefined) return;
	if (path === '-') throw new UsageError('--results takes a file: standard output has the answer');
	const there = await stat(path).catch(() => null);
	// A pipe is opened once, by who has something to say: its reader takes an end for the end.
	if (there !== null && !there.isFile() && !there.isDirectory()) return;
	if (there?.isFile()) {
		await assertNoInput(path, of.inputs);
		if (there.size > 0 && !(await isOfJob(path, await of.mailing())))
			throw new UsageError(`--results: ${path} is there already; nothing was sent`, {
				hint: 'give another file, or move that one away',
			});
	}
	try {
		await (await createOutputFile(path, 'replace')).discard();
	} catch (cause) {
		const what = cause instanceof TableError ? cause.message : `${path} cannot be written (${codeOf(cause)})`;
		throw new UsageError(`--results: ${what}; nothing was sent`, { cause });
	}
}

/** The files that options name to read from. */
export function inputsOf({
	csv,
	batch,
	textFile,
	htmlFile,
	contextFile,
}: Pick<SendOptions, 'csv' | 'batch' | 'textFile' | 'htmlFile' | 'contextFile'>): string[] {
	const paths = [csv, batch, textFile?.path, htmlFile?.path, contextFile?.path];
	return paths.filter((path) => typeof path === 'string');
}

/** The mailing of a job that was named, if there is one. */
export async function knownMailing(mailings: Mailings, name: string | undefined): Promise<Uuid | null> {
	if (name === undefined) return null;
	const { results } = await mailings.page({ key: name, page_size: 1 });
	return results.find(({ key }) => key === name)?.id ?? null;
}

/** However it is spelled, and through whatever link. */
async function assertNoInput(path: string, inputs: readonly string[]): Promise<void> {
	const target = await stat(path);
	for (const input of inputs) {
		const read = await stat(input).catch(() => null);
		if (read !== null && read.dev === target.dev && read.ino === target.ino)
			throw new UsageError(`--results: ${path} is what this send reads; nothing was sent`, {
				hint: 'give another file',
			});
	}
}

/** Longer than a line of results is. */
const lookedAt = 64 * 1024;

/** Each of its lines ends with the mailing; one without lines has nothing to lose. */
async function isOfJob(path: string, mailing: Uuid | null): Promise<boolean> {
	const file = await open(path).catch(() => null);
	if (file === null) return false;
	try {
		const { buffer, bytesRead } = await file.read(Buffer.alloc(lookedAt), 0, lookedAt, 0);
		const text = buffer.toString('utf8', 0, bytesRead);
		const head = `${resultColumns.join(',')}\r\n`;
		return text === head || (text.startsWith(head) && mailing !== null && text.includes(`,${mailing}\r\n`));
	} finally {
		await file.close();
	}
}

function codeOf(error: unknown): string {
	return error instanceof Error && 'code' in error ? String(error.code) : '';
}
