/**
 * The rejects file: what an import did not take, with the original columns first and `_line`, `_code`, `_error` behind,
 * so that it imports again as it is; behind those again what was left out, which is left out again. It is made with the first reject, and replaces no file but one of duplicates alone.
 */
import { constants } from 'node:fs';
import { access, type FileHandle, open, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { bytesOf, newTexts, TextWriter } from '../../api/row-texts.js';
import { CliError } from '../errors.js';
import { isRejectColumn, type RejectedRow, rejectColumns, TableError } from './finding.js';
import {
	formatRejectsHeader,
	holdsDuplicatesOnly,
	type RejectsLayout,
	resumeRejects,
} from './rejects-resume.js';
import { formatCsvRow } from './write-csv.js';

export interface RejectsFile {
	readonly path: string;
	/** Rows written by this run. */
	readonly written: number;
	/**
	 * Appends in the order of lines and syncs to the disk: when it resolves, the rows are kept. A full disk is exit 74. One
	 * call at a time.
	 */
	write(rows: Iterable<RejectedRow>): Promise<void>;
	close(): Promise<void>;
}

export interface RejectsOptions {
	path: string;
	/** The header of the source. */
	header: readonly string[];
	/** Positions in it of columns that were left out: they come last. None: all were taken. */
	leftOut?: readonly number[];
	/** Of the source, whose reader is to read this file too; a comma where it has none. */
	delimiter?: string;
	/** Begins with a byte order mark: a spreadsheet takes what has none for the code page of its own machine. */
	isMarked?: boolean;
	/** A job that goes on: the file of the earlier run is continued, and what it already holds is not written twice. */
	resume?: boolean;
}

/** Throws `TableError` before anything is imported: the file exists already, or its folder cannot be written. */
export async function openRejects(options: RejectsOptions): Promise<RejectsFile> {
	const { path, header, leftOut = [], delimiter, isMarked = false, resume = false } = options;
	const there = await stat(path).catch(() => null);
	// A pipe or /dev/null holds nothing that could be lost, or gone on with.
	const isStream = there !== null && !there.isFile() && !there.isDirectory();
	if (there?.isDirectory()) throw new TableError('directory', `the rejects file ${path} is a directory`);
	const data = header.flatMap((name, index) => (isRejectColumn(name) ? [] : [index]));
	const out = new Set(leftOut);
	const kept = data.filter((index) => !out.has(index));
	const behind = data.filter((index) => out.has(index));
	const named = (indexes: readonly number[]) => indexes.map((index) => header[index] ?? '');
	const columns = [...named(kept), ...rejectColumns, ...named(behind)];
	const layout = { columns, delimiter: delimiter || ',', mark: isMarked ? '\uFEFF' : '' } as const;
	const state = {
		path,
		layout,
		kept,
		behind,
		last: data.at(-1),
		width: header.length,
		lastLine: 0,
		exists: there !== null,
		isStream,
	};
	if (there === null) await assertFolder(path);
	if (there === null || isStream) return new Rejects(state);
	if (!resume) return replaceDuplicates(state);
	const lastLine = await resumeRejects(path, layout);
	if (lastLine === null) throw alreadyThere(path);
	return new Rejects({ ...state, lastLine });
}

/** Duplicates are no failure: tomorrow's run of the same command must not stop at the file that lists today's. */
async function replaceDuplicates(state: State): Promise<RejectsFile> {
	if (!(await holdsDuplicatesOnly(state.path, state.layout))) throw alreadyThere(state.path);
	await rm(state.path).catch((cause: unknown) => Promise.reject(noFolder(state.path, cause)));
	return new Rejects({ ...state, exists: false });
}

function assertFolder(path: string): Promise<void> {
	return access(dirname(path), constants.W_OK).catch((cause: unknown) =>
		Promise.reject(noFolder(path, cause)),
	);
}

interface State {
	path: string;
	layout: RejectsLayout;
	/** Indexes of the source's columns that are data and were taken. */
	kept: readonly number[];
	/** Of those that are data and were left out. */
	behind: readonly number[];
	/** The last one that is data. */
	last: number | undefined;
	/** Columns of the source. */
	width: number;
	/** Up to this line of the source the file is complete. */
	lastLine: number;
	exists: boolean;
	/** Not a file: nothing of it can be synced. */
	isStream: boolean;
}

class Rejects implements RejectsFile {
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

	/** Row by row into bytes: while these are synced to the disk, thousands of rows would outlive many others. */
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
		const file = await open(path, exists ? 'a' : 'wx', 0o600).catch((error: unknown) => {
			const isThere = error instanceof Error && 'code' in error && error.code === 'EEXIST';
			return Promise.reject(isThere ? alreadyThere(path) : error);
		});
		try {
			if ((await file.stat()).size === 0) await file.appendFile(formatRejectsHeader(layout));
			if (!this.#state.isStream) await syncFolder(dirname(path));
			return file;
		} catch (error) {
			await file.close();
			throw error;
		}
	}

	/** Every row has the header's width: missing cells are empty, those too many are joined to the last one. */
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
		hint: 'move it away, or name another with --rejects FILE',
	});
}

/** A run that goes on cuts what is there back to whole rows, so nothing is lost but the work of a batch. */
function notWritten(path: string, cause: unknown): CliError {
	const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
	const isFull = code === 'ENOSPC' || code === 'EDQUOT';
	const why = isFull ? 'no space is left on the disk' : code || String(cause);
	return new CliError(
		isFull ? 'disk_full' : 'disk',
		74,
		`the rejects file ${path} cannot be written: ${why}`,
		{
			hint: isFull
				? 'free some space, then run the same command with --resume'
				: 'run it again with --resume',
			cause,
		},
	);
}

function noFolder(path: string, cause: unknown): TableError {
	return new TableError(
		'unreadable',
		`the rejects file ${path} cannot be written: no folder, or no permission`,
		{ cause },
	);
}

/** A name is durable when its folder is. */
async function syncFolder(path: string): Promise<void> {
	const folder = await open(path);
	await folder.sync().finally(() => folder.close());
}
