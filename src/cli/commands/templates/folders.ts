/** A directory with a folder for each template: `NAME/{subject.txt,body.html,body.txt}`, and what is done to it. */
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { listFieldErrors } from '../../../api/errors.js';
import { maxBodyBytes, templateFields } from '../../../api/inputs.js';
import { trimWhitespace } from '../../../api/schema/python.js';
import { byMark, utf8Fault } from '../../../tables/encoding.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type Columns, column } from '../../render/columns.js';
import { templateName } from './folder-names.js';

export const fileOf = { name: 'subject.txt', html_body: 'body.html', text_body: 'body.txt' } as const;
export type Part = keyof typeof fileOf;
export const parts = ['name', 'html_body', 'text_body'] as const;
const fileNames: readonly string[] = Object.values(fileOf);

export interface TemplateFolder {
	folder: string;
	/** False: a file or a symbolic link in its place. */
	isFolder: boolean;
	/** `subject.txt`; without that file, what the folder's name says. */
	values: Record<Part, string>;
	/** What prevents it from being pushed, each with its path. */
	findings: string[];
}

/** In the order of their names; those that begin with a dot are passed over. Throws `UsageError`: no directory. */
export async function readFolders(directory: string): Promise<TemplateFolder[]> {
	const entries = await readdir(directory, { withFileTypes: true }).catch((error: unknown) =>
		refuseDirectory(error, directory),
	);
	const folders: TemplateFolder[] = [];
	for (const entry of entries.filter(isShown).sort((a, b) => (a.name < b.name ? -1 : 1))) {
		const path = join(directory, entry.name);
		if (entry.isDirectory()) folders.push(await readFolder(path, entry.name));
		else {
			const what = entry.isSymbolicLink()
				? `${path} is a symbolic link`
				: `${path}: a directory of templates has a folder for each, and no file`;
			const values = { name: '', html_body: '', text_body: '' };
			folders.push({ folder: entry.name, isFolder: false, values, findings: [what] });
		}
	}
	findTwins(directory, folders);
	return folders;
}

/** Octets of a file; null: there is none. Throws `UsageError` for what is no file. */
export async function readPart(path: string): Promise<Buffer | null> {
	const there = await lstat(path).catch((error: unknown) => {
		if (isMissing(error)) return null;
		throw error;
	});
	if (there === null) return null;
	if (there.isSymbolicLink()) throw new UsageError(`${path} is a symbolic link`);
	if (!there.isFile()) throw new UsageError(`${path} is no file`);
	// A body may be as long, and a line end more is none.
	if (there.size > maxBodyBytes) throw new UsageError(`${path} holds more than 2 MiB`);
	return readFile(path);
}

/** Throws `UsageError`: the directory is none, or may not be read. */
export function refuseDirectory(error: unknown, directory: string): never {
	const code = error instanceof Error && 'code' in error ? error.code : '';
	if (code === 'ENOENT') throw new UsageError(`${directory}: no such directory`, { cause: error });
	if (code === 'ENOTDIR' || code === 'EEXIST')
		throw new UsageError(`${directory} is not a directory`, { cause: error });
	if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
		throw new UsageError(`${directory}: no permission`, { cause: error });
	throw error;
}

/** The text of a file. Throws `UsageError` for one that is not UTF-8. */
function decodePart(bytes: Buffer, path: string): string {
	const fault = utf8Fault(bytes);
	if (fault !== null) throw new UsageError(`${path} ${fault}`);
	// A body is pulled as it was pushed, to the byte.
	if (byMark(bytes) !== null)
		throw new UsageError(`${path} begins with a byte order mark: save it as UTF-8 without one`);
	return bytes.toString();
}

/** The name that `subject.txt` gives. Throws `UsageError` for several lines. */
function subjectOf(text: string, path: string): string {
	const subject = trimWhitespace(text);
	if (/[\r\n]/.test(subject)) throw new UsageError(`${path}: a subject is one line`);
	return subject;
}

async function readFolder(path: string, folder: string): Promise<TemplateFolder> {
	const found: TemplateFolder = {
		folder,
		isFolder: true,
		values: { name: trimWhitespace(templateName(folder)), html_body: '', text_body: '' },
		findings: [],
	};
	const names = (await readdir(path)).filter((name) => isShown({ name })).sort();
	for (const name of names.filter((one) => !fileNames.includes(one)))
		found.findings.push(`${join(path, name)}: a template has ${fileNames.join(', ')} and no other file`);
	for (const part of parts) {
		const file = join(path, fileOf[part]);
		try {
			const bytes = await readPart(file);
			if (bytes === null) continue;
			const text = decodePart(bytes, file);
			found.values[part] = part === 'name' ? subjectOf(text, file) : text;
		} catch (error) {
			if (!(error instanceof UsageError)) throw error;
			found.findings.push(error.message);
		}
	}
	if (!names.includes(fileOf.html_body) && !names.includes(fileOf.text_body))
		found.findings.push(`${path} has no body: ${fileOf.html_body} or ${fileOf.text_body} is wanted`);
	const checked = templateFields.parse(found.values, 'create');
	if (checked.kind === 'invalid')
		for (const { path: key, message } of listFieldErrors(checked.errors))
			found.findings.push(`${join(path, fileOf[parts.find((part) => part === key) ?? 'name'])}: ${message}`);
	return found;
}

function findTwins(directory: string, folders: readonly TemplateFolder[]): void {
	const seen = new Map<string, string>();
	for (const { folder, values, findings } of folders) {
		if (values.name === '') continue;
		const first = seen.get(values.name);
		if (first === undefined) seen.set(values.name, folder);
		else
			findings.push(
				`${join(directory, folder)}: "${values.name}" is there already, in ${join(directory, first)}`,
			);
	}
}

function isShown({ name }: { name: string }): boolean {
	return !name.startsWith('.');
}

function isMissing(error: unknown): boolean {
	return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
}

export interface Outcome {
	action: 'created' | 'updated' | 'unchanged' | 'deleted';
	name: string;
	/** Within the directory; null: it has none. */
	folder: string | null;
	files: readonly string[];
}

export const outcomeColumns: Columns<Outcome> = [
	column('action', 'ACTION'),
	column('name', 'NAME (SUBJECT)', { isKept: 'name', isName: true }),
	column('folder', 'FOLDER', { isKept: 'name' }),
	{ key: 'files', header: 'FILES', value: ({ files }) => files.join(', ') },
];

/** The answer of a dry run: the lines too where people read them. */
export async function foretell(
	cx: CommandContext,
	verb: 'push' | 'pull',
	{ directory, outcomes }: { directory: string; outcomes: readonly Outcome[] },
): Promise<void> {
	const isRead = cx.out.format === 'table' || cx.out.format === 'wide';
	if (isRead) await cx.out.rows(outcomes, outcomeColumns, { all: true });
	const plan = { with: { templates: outcomes } };
	const what = `${verb} ${directory}: ${tally(outcomes)}`;
	await (verb === 'push'
		? cx.wouldDo(what, { push: directory, ...plan })
		: cx.wouldDo(what, { pull: directory, ...plan }));
}

/** `1 created, 2 unchanged`. */
export function tally(outcomes: readonly Outcome[]): string {
	const counts = (['created', 'updated', 'unchanged', 'deleted'] as const).flatMap((action) => {
		const count = outcomes.filter((one) => one.action === action).length;
		return count === 0 ? [] : [`${count} ${action}`];
	});
	return counts.length === 0 ? 'no templates' : counts.join(', ');
}
