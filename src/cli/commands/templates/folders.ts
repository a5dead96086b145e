import { createHash } from 'node:crypto';
import { lstat, readdir, readFile, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { need } from '../../../api/capabilities.js';
import { codeOf } from '../../../api/errors.js';
import type { Template } from '../../../api/records.js';
import { trimWhitespace } from '../../../api/schema/python.js';
import { makeFolders } from '../../../jobs/folders.js';
import { byMark, utf8Fault } from '../../../tables/encoding.js';
import { writeOutputFile } from '../../../tables/output-file.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { isTable } from '../../frame/globals.js';
import { didYouMean } from '../../frame/words.js';
import { counted } from '../../render/units.js';
import { warnOfFindings } from '../../verbs/content.js';
import { collect, walk } from '../../verbs/listing.js';
import { missing } from '../../verbs/resolve.js';
import { agree, carryOut, planSteps, type Step } from '../apply/plan.js';
import { type Outcome, outcomeColumns } from '../templates.js';

const fileOf = { name: 'subject.txt', html_body: 'body.html', text_body: 'body.txt' } as const;
type Part = keyof typeof fileOf;
const parts = ['name', 'html_body', 'text_body'] as const;

interface TemplateFolder {
	folder: string;
	values: Record<Part, string>;
	fault: string | null;
}

interface Chosen {
	directory: string;
	/** An empty array selects all templates. */
	names: readonly string[];
}

type Push = Chosen & { prune: boolean };

export async function push(cx: CommandContext, { directory, names, prune }: Push): Promise<void> {
	await need(await cx.api(), 'templates');
	const folders = await readFolders(directory);
	if (folders === null) throw new UsageError(`${directory}: no such directory`);
	const chosen = folders.filter(
		({ folder, values }) => names.length === 0 || names.some((one) => one === values.name || one === folder),
	);
	const fault = chosen.find((one) => one.fault !== null)?.fault;
	if (fault) throw new UsageError(fault);
	const known = new Set(folders.map(({ values }) => values.name));
	const templates = folders
		.filter((one) => one.fault === null)
		.map(({ folder, values }) => {
			const was = templateName(folder);
			// If the subject was edited, the folder's name still identifies the template.
			const declared = { name: values.name, values, where: join(directory, folder) };
			return known.has(was) ? declared : { ...declared, was };
		});
	const wanted = new Set([...names, ...chosen.map(({ values }) => values.name)]);
	const steps = (await planSteps(cx, { templates }, prune)).filter(
		({ change }) => names.length === 0 || wanted.has(change.name),
	);
	const outcomes = outcomesOf(chosen, steps);
	for (const name of names) {
		if (outcomes.some((one) => one.name === name || one.folder === name)) continue;
		const hint = didYouMean(name, [...known, ...folders.map(({ folder }) => folder)]);
		throw new UsageError(`no folder for the template "${name}" in ${directory}`, { ...(hint && { hint }) });
	}
	for (const { values } of chosen) {
		const { name, text_body, html_body } = values;
		if (!steps.some(({ change }) => change.action !== 'delete' && change.name === name)) continue;
		const content = { subject: name, text: text_body || null, html: html_body || null };
		await warnOfFindings(cx, content, { bulk: false, isTemplate: true, of: name });
	}
	if (cx.dryRun) {
		if ((await cx.connection()).local !== null) await carryOut(cx, steps);
	} else {
		await agree(cx, 'templates push', steps);
		await carryOut(cx, steps);
	}
	await report(cx, { push: directory }, outcomes);
}

async function report(cx: CommandContext, place: { push: string } | { pull: string }, outcomes: Outcome[]) {
	const [[verb, directory] = []] = Object.entries(place);
	const counts = (['created', 'updated', 'unchanged', 'deleted'] as const).flatMap((action) => {
		const count = outcomes.filter((one) => one.action === action).length;
		return count === 0 ? [] : [`${count} ${action}`];
	});
	const what = `${directory}: ${counts.length === 0 ? 'no templates' : counts.join(', ')}`;
	if (!cx.dryRun || isTable(cx.out.format)) await cx.out.rows(outcomes, outcomeColumns, { all: true });
	if (cx.dryRun) return cx.wouldDo(`${verb} ${what}`, { ...place, with: { templates: outcomes } });
	await cx.note(`${verb === 'push' ? 'pushed' : 'pulled to'} ${what}`);
}

function outcomesOf(folders: readonly TemplateFolder[], steps: readonly Step[]): Outcome[] {
	const pushed = folders.map(({ folder, values }): Outcome => {
		const step = steps.find(({ change }) => change.action !== 'delete' && change.name === values.name);
		const differing = parts.filter((part) => {
			const change = step?.change.changes[part];
			return change !== undefined && (change.from ?? '') !== change.to;
		});
		const action = step?.change.action === 'create' ? 'created' : step ? 'updated' : 'unchanged';
		return { action, name: values.name, folder, files: differing.map((part) => fileOf[part]) };
	});
	const deleted = steps
		.filter(({ change }) => change.action === 'delete')
		.map(({ change: { name } }): Outcome => ({ action: 'deleted', name, folder: null, files: [] }));
	return [...pushed, ...deleted];
}

interface Difference {
	part: Part;
	path: string;
	wanted: string | null;
	isThere: boolean;
}

type Pull = Chosen & { force: boolean };

export async function pull(cx: CommandContext, { directory, names, force }: Pull): Promise<void> {
	const templates = await need(await cx.api(), 'templates');
	const all = await collect(walk(templates, {}, { signal: cx.signal }));
	const unknown = names.find((one) => !all.some(({ id, name }) => one === name || one === id));
	const known = all.map(({ name }) => name);
	if (unknown !== undefined)
		throw missing('template', unknown, didYouMean(unknown, known) ?? mailctl('templates', 'list'));
	const folders = (await readFolders(directory)) ?? [];
	const places = placesOf(all, folders);
	const chosen = all.filter(
		({ id, name }) => names.length === 0 || names.includes(name) || names.includes(id),
	);
	const pulled: (Outcome & { folder: string; differences: readonly Difference[] })[] = [];
	for (const template of chosen) {
		const { name } = template;
		const folder = places.get(name) ?? markedFolder(name);
		const there = folders.find((one) => one.folder === folder);
		const differences = await compare(join(directory, folder), template, there);
		const action = there === undefined ? 'created' : differences.length === 0 ? 'unchanged' : 'updated';
		pulled.push({ action, name, folder, files: differences.map(({ part }) => fileOf[part]), differences });
	}
	const outcomes = pulled.map(({ differences: _, ...outcome }) => outcome);
	if (cx.dryRun) return report(cx, { pull: directory }, outcomes);
	const lost = pulled.flatMap(({ differences }) => differences.filter(({ isThere }) => isThere));
	if (!force) await agreeToReplace(cx, directory, lost);
	makeFolders(directory);
	for (const { folder, differences } of pulled) {
		cx.signal.throwIfAborted();
		makeFolders(join(directory, folder));
		for (const difference of differences) await write(difference);
	}
	await report(cx, { pull: directory }, outcomes);
}

async function write({ path, wanted, isThere }: Difference): Promise<void> {
	if (wanted === null) return rm(path, { force: true });
	await writeOutputFile(path, isThere ? 'replace' : 'refuse', [wanted]);
}

const mostNamed = 10;

async function agreeToReplace(cx: CommandContext, directory: string, lost: readonly Difference[]) {
	if (lost.length === 0) return;
	const named = lost.slice(0, mostNamed).map(({ path }) => relative(directory, path));
	const more = lost.length > mostNamed ? ` and ${lost.length - mostNamed} more` : '';
	const files = counted(lost.length, 'file');
	await cx.confirm({ kind: 'mild', what: `replace ${files} in ${directory}: ${named.join(', ')}${more}` });
}

/** Maps each subject to its folder, or to a new one. */
function placesOf(all: readonly Template[], folders: readonly TemplateFolder[]): ReadonlyMap<string, string> {
	const plain = folderNames(all.map(({ name }) => name));
	const places = new Map<string, string>();
	const taken = new Set<string>();
	for (const { folder, values } of folders) {
		if (!plain.has(values.name) || places.has(values.name)) continue;
		places.set(values.name, folder);
		taken.add(sameFolder(folder));
	}
	for (const [name, folder] of plain)
		if (!places.has(name)) places.set(name, taken.has(sameFolder(folder)) ? markedFolder(name) : folder);
	return places;
}

async function compare(path: string, template: Template, there: TemplateFolder | undefined) {
	const { name, html_body, text_body } = template;
	if (there !== undefined && (await lstat(path)).isDirectory() === false)
		throw new UsageError(there.fault ?? path);
	const wanted: Record<Part, string | null> = {
		name: /[\r\n]/.test(name) ? null : `${name}\n`,
		html_body: html_body || null,
		// A template without any body gets an empty text file, because `push` needs a body.
		text_body: text_body === '' && html_body !== '' ? null : text_body,
	};
	const differences: Difference[] = [];
	for (const part of parts) {
		const file = join(path, fileOf[part]);
		const found = await readPart(file);
		const text = wanted[part];
		// Leave the subject file alone if the folder's name or the file already gives this subject.
		const isSaid = part === 'name' && there?.values.name === name && (found === null || there.fault === null);
		const isSame = found === null ? text === null : text !== null && found.equals(Buffer.from(text));
		if (!isSaid && !isSame) differences.push({ part, path: file, wanted: text, isThere: found !== null });
	}
	return differences;
}

async function readFolders(directory: string): Promise<TemplateFolder[] | null> {
	const entries = await orMissing(readdir(directory, { withFileTypes: true }));
	if (entries === null) return null;
	const folders: TemplateFolder[] = [];
	const seen = new Map<string, string>();
	const shown = entries.filter((entry) => !entry.name.startsWith('.') && !entry.isFile());
	for (const entry of shown.sort((a, b) => (a.name < b.name ? -1 : 1))) {
		const path = join(directory, entry.name);
		const found: TemplateFolder = {
			folder: entry.name,
			values: { name: '', html_body: '', text_body: '' },
			fault: null,
		};
		try {
			if (entry.isSymbolicLink()) throw new UsageError(`${path} is a symbolic link`);
			await readFolder(path, found);
			const first = seen.get(found.values.name);
			if (first !== undefined)
				throw new UsageError(`${path}: the template "${found.values.name}" is in ${first} already`);
			seen.set(found.values.name, path);
		} catch (error) {
			if (!(error instanceof UsageError)) throw error;
			found.fault = error.message;
		}
		folders.push(found);
	}
	return folders;
}

async function readFolder(path: string, { folder, values }: TemplateFolder): Promise<void> {
	values.name = trimWhitespace(templateName(folder));
	let hasBody = false;
	for (const part of parts) {
		const file = join(path, fileOf[part]);
		const bytes = await readPart(file);
		if (bytes === null) continue;
		hasBody ||= part !== 'name';
		const fault = utf8Fault(bytes);
		if (fault !== null) throw new UsageError(`${file} ${fault}`);
		// Refuse a byte order mark instead of removing it: `pull` must write the bytes that `push` read.
		if (byMark(bytes) !== null)
			throw new UsageError(`${file} begins with a byte order mark: save it as UTF-8 without one`);
		values[part] = part === 'name' ? trimWhitespace(bytes.toString()) : bytes.toString();
		if (part === 'name' && /[\r\n]/.test(values.name))
			throw new UsageError(`${file}: the subject must be one line`);
	}
	if (!hasBody)
		throw new UsageError(`${path} has no body: it needs ${fileOf.html_body} or ${fileOf.text_body}`);
}

async function readPart(path: string): Promise<Buffer | null> {
	const there = await orMissing(lstat(path));
	if (there === null) return null;
	if (there.isSymbolicLink()) throw new UsageError(`${path} is a symbolic link`);
	if (!there.isFile()) throw new UsageError(`${path} is not a file`);
	return readFile(path);
}

function orMissing<T>(found: Promise<T>): Promise<T | null> {
	return found.catch((error: unknown) => {
		if (codeOf(error) === 'ENOENT') return null;
		throw error;
	});
}

/** The longest folder name. File systems allow 255 bytes, encrypted ones 143. */
const maxBytes = 143;

const markLength = 9;

const special = /[\u0000-\u001f\u007f-\u009f%~/\\:*?"<>|]/;

/**
 * Maps names to folders. Percent-encodes the characters that a folder name cannot contain. A name that is empty, too
 * long, or equal to another except for case gets a folder that ends in `~` and a part of the name's hash.
 * `templateName` cannot restore the name from that folder.
 */
export function folderNames(names: readonly string[]): ReadonlyMap<string, string> {
	const counts = new Map<string, number>();
	for (const name of names) counts.set(sameFolder(name), (counts.get(sameFolder(name)) ?? 0) + 1);
	return new Map(
		names.map((name) => {
			const escaped = escapedChars(name).join('');
			const isPlain =
				escaped !== '' && Buffer.byteLength(escaped) <= maxBytes && counts.get(sameFolder(name)) === 1;
			return [name, isPlain ? escaped : markedFolder(name)];
		}),
	);
}

function markedFolder(name: string): string {
	let start = '';
	for (const char of escapedChars(name)) {
		if (Buffer.byteLength(start + char) > maxBytes - markLength) break;
		start += char;
	}
	return `${start}~${createHash('sha256')
		.update(name)
		.digest('hex')
		.slice(0, markLength - 1)}`;
}

export function templateName(folder: string): string {
	return folder.replace(/(?:%[0-9A-F]{2})+/g, (escapes) => {
		try {
			return decodeURIComponent(escapes);
		} catch {
			return escapes;
		}
	});
}

/** Returns the same text for names that some file systems do not distinguish. */
export function sameFolder(name: string): string {
	return name.normalize('NFC').toLowerCase();
}

function escapedChars(name: string): string[] {
	return [...name].map((char, at) =>
		special.test(char) || (at === 0 && char === '.') ? octets(char) : char,
	);
}

function octets(char: string): string {
	return [...Buffer.from(char)]
		.map((octet) => `%${octet.toString(16).toUpperCase().padStart(2, '0')}`)
		.join('');
}
