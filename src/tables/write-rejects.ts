import { constants, existsSync } from 'node:fs';
import { access, type FileHandle, open, stat, truncate } from 'node:fs/promises';
import { dirname, join, parse as parsePath } from 'node:path';
import { parse } from 'csv-parse/sync';
import { codeOf, systemReason } from '../api/errors.js';
import { bytesOf, newTexts, TextWriter } from '../api/row-texts.js';
import { isRejectColumn, nextRejectsPath, type RejectedRow, rejectColumns, TableError } from './finding.js';
import { refusalOf, syncFolder } from './output-file.js';
import { readBytes } from './source.js';
import { formatCsvRow } from './write-csv.js';

export interface RejectsOptions {
	path: string;
	isNumbered?: boolean;
	header: readonly string[];
	leftOut?: readonly number[];
	delimiter?: string;
	/** Writes a byte order mark, without which spreadsheets assume the machine's code page. */
	isMarked?: boolean;
	resume?: boolean;
}

export async function openRejects(options: RejectsOptions): Promise<RejectsFile> {
	if (options.resume !== true) return new RejectsFile(await freeState(options));
	const state = await stateOf(options);
	const { path, layout, exists, isStream } = state;
	if (!exists || isStream) return new RejectsFile(state);
	const lastLine = await resumeRejects(path, layout);
	if (lastLine === null) throw alreadyThere(path);
	return new RejectsFile({ ...state, lastLine });
}

/** Throws the errors of `openRejects` that do not depend on the content of the file. Changes nothing. */
export async function assertRejects(options: RejectsOptions): Promise<void> {
	await (options.resume === true ? stateOf(options) : freeState(options));
}

async function freeState(options: RejectsOptions): Promise<State> {
	for (let { path } = options; ; path = nextRejectsPath(path)) {
		const state = await stateOf({ ...options, path });
		if (!state.exists || state.isStream) return state;
		if (options.isNumbered !== true) throw alreadyThere(path);
	}
}

async function stateOf(options: RejectsOptions) {
	const { path, header, leftOut = [], delimiter, isMarked = false } = options;
	const there = await stat(path).catch(() => null);
	// A pipe or /dev/null has no content to keep or to continue.
	const isStream = there !== null && !there.isFile() && !there.isDirectory();
	if (there?.isDirectory()) throw new TableError('directory', `the rejects file ${path} is a directory`);
	const data = header.flatMap((name, index) => (isRejectColumn(name) ? [] : [index]));
	const out = new Set(leftOut);
	const kept = data.filter((index) => !out.has(index));
	const behind = data.filter((index) => out.has(index));
	const named = (indexes: readonly number[]) => indexes.map((index) => header[index] ?? '');
	const columns = [...named(kept), ...rejectColumns, ...named(behind)];
	const layout: RejectsLayout = { columns, delimiter: delimiter || ',', mark: isMarked ? '\uFEFF' : '' };
	if (there === null)
		await access(dirname(path), constants.W_OK).catch((cause: unknown) =>
			Promise.reject(noFolder(path, cause)),
		);
	const width = header.length;
	return {
		path,
		layout,
		kept,
		behind,
		last: data.at(-1),
		width,
		lastLine: 0,
		exists: there !== null,
		isStream,
	};
}

type State = Awaited<ReturnType<typeof stateOf>>;

export class RejectsFile {
	written = 0;
	readonly #state: State;
	readonly #lines = newTexts();
	#file: FileHandle | null = null;

	constructor(state: State) {
		this.#state = state;
	}

	get path(): string {
		return this.#state.path;
	}

	/** Resolves after the rows are on the disk. Wait for that before the next call. */
	async write(rows: Iterable<RejectedRow>): Promise<void> {
		this.#formatNews(rows);
		const { bytes, count } = this.#lines;
		if (count === 0) return;
		try {
			this.#file ??= await this.#open();
			await this.#file.appendFile(bytes.subarray(0, bytesOf(this.#lines)));
			if (!this.#state.isStream) await this.#file.datasync();
		} catch (error) {
			throw error instanceof TableError ? error : notWritten(this.path, error);
		}
		this.written += count;
	}

	/** Formats row by row, because the garbage collector would copy thousands of row objects that wait for the sync. */
	#formatNews(rows: Iterable<RejectedRow>): void {
		this.#lines.count = 0;
		const writer = new TextWriter(this.#lines);
		for (const row of rows) if (row.line > this.#state.lastLine) writer.add(this.#format(row));
	}

	async close(): Promise<void> {
		await this.#file?.close();
		this.#file = null;
	}

	async #open(): Promise<FileHandle> {
		const { path, layout, exists } = this.#state;
		const file = await open(path, exists ? 'a' : 'wx', 0o600).catch((error: unknown) =>
			Promise.reject(codeOf(error) === 'EEXIST' ? alreadyThere(path) : error),
		);
		try {
			if ((await file.stat()).size === 0) await file.appendFile(headerOf(layout));
			if (!this.#state.isStream) await syncFolder(dirname(path));
			return file;
		} catch (error) {
			await file.close();
			throw error;
		}
	}

	#format({ line, code, error, cells }: RejectedRow): string {
		const { width, kept, behind, last, layout } = this.#state;
		const extra = cells.slice(width);
		const cellAt = (index: number) => {
			const cell = cells[index] ?? '';
			return index === last ? [cell, ...extra].join(layout.delimiter) : cell;
		};
		const row = [...kept.map(cellAt), String(line), code, error, ...behind.map(cellAt)];
		return formatCsvRow(row, layout.delimiter);
	}
}

function alreadyThere(path: string): TableError {
	return new TableError('file_exists', `the rejects file ${path} exists already`, {
		hint: `move it away, or name another with --rejects ${freeName(path)}`,
	});
}

/** Returns `FILE` if the free name needs shell quotes. */
function freeName(path: string): string {
	const { dir, name, ext } = parsePath(path);
	for (let at = 2; ; at += 1) {
		const free = join(dir, `${name}-${at}${ext}`);
		if (!existsSync(free)) return /^[\w@.,:/+=%-]+$/.test(free) ? free : 'FILE';
	}
}

/** Suggests `--resume`, which truncates the file to whole rows. At most the work of one batch is lost. */
function notWritten(path: string, cause: unknown): TableError {
	const isFull = ['ENOSPC', 'EDQUOT'].includes(codeOf(cause));
	const why = isFull ? 'no space is left on the disk' : systemReason(cause);
	return new TableError(isFull ? 'disk_full' : 'disk', `the rejects file ${path} cannot be written: ${why}`, {
		hint: isFull ? 'free some space, then run the same command with --resume' : 'run it again with --resume',
		cause,
	});
}

function noFolder(path: string, cause: unknown): TableError {
	const { code, why } = refusalOf(cause, path) ?? { code: 'unreadable' as const, why: systemReason(cause) };
	return new TableError(code, `the rejects file ${path} cannot be written: ${why}`, {
		cause,
		hint: 'choose another file with --rejects FILE',
		unwritten: path,
	});
}

interface RejectsLayout {
	columns: readonly string[];
	delimiter: string;
	mark: '' | '\uFEFF';
}

function headerOf({ columns, delimiter, mark }: RejectsLayout): string {
	return mark + formatCsvRow(columns, delimiter);
}

/** Returns the last row's `_line` (0 without rows), or null if the layout differs. Removes an incomplete last row. */
async function resumeRejects(path: string, layout: RejectsLayout): Promise<number | null> {
	const { size } = await stat(path);
	const start = Buffer.from(headerOf(layout));
	const found = await readAt(path, 0, Math.min(size, start.length));
	if (!found.equals(start.subarray(0, found.length))) return null;
	if (size < start.length) {
		await truncate(path, 0);
		return 0;
	}
	const { last: begin, end } = await findWholeRows(path);
	const last = begin < start.length ? 0 : lineOf(await readAt(path, begin, end - begin), layout);
	if (last !== null && end < size) await truncate(path, end);
	return last;
}

function lineOf(row: Buffer, { columns, delimiter }: RejectsLayout): number | null {
	const [cells = []]: string[][] = parse(row, { delimiter, relax_column_count: true });
	const line = Number(cells[columns.lastIndexOf('_line')]);
	return Number.isSafeInteger(line) && line > 0 ? line : null;
}

async function readAt(path: string, start: number, length: number): Promise<Buffer> {
	const file = await open(path);
	try {
		const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, start);
		return buffer.subarray(0, bytesRead);
	} finally {
		await file.close();
	}
}

/** Finds whole rows by their quotes and line feeds, because a table reader may refuse rejected rows. */
async function findWholeRows(path: string): Promise<{ last: number; end: number }> {
	let [last, end, offset] = [0, 0, 0];
	let isQuoted = false;
	for await (const chunk of readBytes(path)) {
		for (let at = 0; at < chunk.length; at += 1) {
			if (chunk[at] === 0x22) isQuoted = !isQuoted;
			if (chunk[at] !== 0x0a || isQuoted) continue;
			last = end;
			end = offset + at + 1;
		}
		offset += chunk.length;
	}
	return { last, end };
}
