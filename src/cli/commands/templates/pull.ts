/** `templates pull`: a directory as the templates of a deployment are. */
import { readdir, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { need } from '../../../api/capabilities.js';
import type { Template } from '../../../api/records.js';
import { makeFolders } from '../../../jobs/folders.js';
import { createOutputFile } from '../../../tables/output-file.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { didYouMean } from '../../frame/help.js';
import { counted } from '../../render/units.js';
import { keepAll, walk } from '../../verbs/listing.js';
import { missing } from '../../verbs/resolve.js';
import { refuseFindings } from '../apply/plan.js';
import { folderNames, markedFolder, sameFolder, templateName } from './folder-names.js';
import {
	decodePart,
	fileOf,
	type Part,
	parts,
	readFolders,
	readPart,
	refuseDirectory,
	subjectOf,
	type TemplateFolder,
} from './folders.js';
import { foretell, type Outcome, outcomeColumns, tally } from './outcome.js';

/** A file that is not as it should be. */
interface Difference {
	part: Part;
	path: string;
	/** null: it is removed. */
	wanted: string | null;
	isThere: boolean;
}

interface Pulled {
	name: string;
	folder: string;
	isNew: boolean;
	differences: readonly Difference[];
}

/** `names`: of templates, or their UUIDs; none: all. */
export async function pull(
	cx: CommandContext,
	{ directory, names, force }: { directory: string; names: readonly string[]; force: boolean },
): Promise<void> {
	const templates = await need(await cx.api(), 'templates');
	const all = await keepAll(walk(templates, {}, { signal: cx.signal }));
	const chosen = chosenOf(all, names);
	const folders = await foldersThere(directory);
	const places = placesOf(directory, { all, folders });
	const pulled: Pulled[] = [];
	for (const template of chosen) {
		const folder = places.get(template.name) ?? markedFolder(template.name);
		pulled.push(await compare(directory, { folder, template, folders }));
	}
	const outcomes = pulled.map(outcomeOf);
	if (cx.dryRun) return foretell(cx, 'pull', { directory, outcomes });
	if (!force) await agree(cx, directory, pulled);
	makeDirectory(directory);
	for (const one of pulled) {
		cx.signal.throwIfAborted();
		await write(directory, one);
	}
	await cx.out.rows(outcomes, outcomeColumns, { all: true });
	await cx.note(`pulled to ${directory}: ${tally(outcomes)}`);
}

function chosenOf(all: readonly Template[], names: readonly string[]): readonly Template[] {
	const unknown = names.find((name) => !all.some((one) => one.name === name || one.id === name));
	if (unknown !== undefined) {
		const known = all.map(({ name }) => name);
		throw missing('template', unknown, didYouMean(unknown, known) ?? mailctl('templates', 'list'));
	}
	const chosen =
		names.length === 0 ? all : all.filter(({ id, name }) => names.includes(name) || names.includes(id));
	refuseTwins(all, chosen);
	return chosen;
}

/** They would have one folder, and the last of them its files. */
function refuseTwins(all: readonly Template[], chosen: readonly Template[]): void {
	const ids = new Map<string, string>();
	const wanted = new Set(chosen.map(({ name }) => name));
	for (const { id, name } of all.filter((one) => wanted.has(one.name))) {
		const first = ids.get(name);
		if (first !== undefined)
			throw new UsageError(`there are several templates called "${name}": ${first}, ${id}`, {
				hint: mailctl('templates', 'update', id, '--name', 'NAME'),
			});
		ids.set(name, id);
	}
}

/** What cannot be pushed may be pulled over. */
async function foldersThere(directory: string): Promise<readonly TemplateFolder[]> {
	const isThere = await readdir(directory).then(
		() => true,
		(error: { code?: string }) => (error.code === 'ENOENT' ? false : refuseDirectory(error, directory)),
	);
	return isThere ? readFolders(directory) : [];
}

/** The folder whose subject names the template; else the one of its name, unless that is of another template. */
function placesOf(
	directory: string,
	{ all, folders }: { all: readonly Template[]; folders: readonly TemplateFolder[] },
): ReadonlyMap<string, string> {
	const plain = folderNames(all.map(({ name }) => name));
	const places = new Map<string, string>();
	const taken = new Set<string>();
	for (const { folder, values } of folders) {
		if (!plain.has(values.name)) continue;
		const first = places.get(values.name);
		if (first !== undefined)
			throw new UsageError(
				`${join(directory, folder)}: "${values.name}" is there already, in ${join(directory, first)}`,
			);
		places.set(values.name, folder);
		taken.add(sameFolder(folder));
	}
	for (const [name, folder] of plain)
		if (!places.has(name)) places.set(name, taken.has(sameFolder(folder)) ? markedFolder(name) : folder);
	return places;
}

async function compare(
	directory: string,
	{ folder, template, folders }: { folder: string; template: Template; folders: readonly TemplateFolder[] },
): Promise<Pulled> {
	const entry = folders.find((one) => one.folder === folder);
	if (entry?.isFolder === false) refuseFindings(entry.findings);
	const wanted = wantedFiles(template, folder);
	const differences: Difference[] = [];
	for (const part of parts) {
		const path = join(directory, folder, fileOf[part]);
		const there = await readPart(path);
		// A folder that a person made needs no subject.
		const isSaid = part === 'name' && there === null && entry?.values.name === template.name;
		if (!isSaid && !isSame(there, wanted[part], { part, path }))
			differences.push({ part, path, wanted: wanted[part], isThere: there !== null });
	}
	return { name: template.name, folder, isNew: entry === undefined, differences };
}

/** null: no such file. */
function wantedFiles(
	{ id, name, html_body, text_body }: Template,
	folder: string,
): Record<Part, string | null> {
	const hasLines = /[\r\n]/.test(name);
	if (hasLines && templateName(folder) !== name)
		throw new UsageError(`the template "${name}" has line breaks in its name, which no file can say`, {
			hint: mailctl('templates', 'update', id, '--name', 'NAME'),
		});
	if (html_body.startsWith('\ufeff') || text_body.startsWith('\ufeff'))
		throw new UsageError(`a body of the template "${name}" begins with a byte order mark: no file is to`, {
			hint: mailctl('templates', 'update', id, '--html-file', 'FILE'),
		});
	return {
		name: hasLines ? null : `${name}\n`,
		html_body: html_body === '' ? null : html_body,
		// One of them is there, though it is empty.
		text_body: text_body === '' && html_body !== '' ? null : text_body,
	};
}

function isSame(
	there: Buffer | null,
	wanted: string | null,
	{ part, path }: { part: Part; path: string },
): boolean {
	if (there === null) return wanted === null;
	if (wanted === null) return part !== 'name' && there.length === 0;
	if (part !== 'name') return there.equals(Buffer.from(wanted));
	try {
		return subjectOf(decodePart(there, path), path) === wanted.trimEnd();
	} catch {
		return false;
	}
}

function outcomeOf({ name, folder, isNew, differences }: Pulled): Outcome {
	const action = isNew ? 'created' : differences.length === 0 ? 'unchanged' : 'updated';
	return { action, name, folder, files: differences.map(({ part }) => fileOf[part]) };
}

/** Consent to the loss of what is in files. */
async function agree(cx: CommandContext, directory: string, pulled: readonly Pulled[]): Promise<void> {
	const lost = pulled.flatMap(({ differences }) => differences.filter(({ isThere }) => isThere));
	if (lost.length === 0) return;
	const named = lost.slice(0, mostNamed).map(({ path }) => relative(directory, path));
	const more = lost.length > mostNamed ? ` and ${lost.length - mostNamed} more` : '';
	const files = `${counted(lost.length, 'file')} that ${lost.length === 1 ? 'differs' : 'differ'}`;
	await cx.confirm({ kind: 'mild', what: `replace ${files} in ${directory}: ${named.join(', ')}${more}` });
}

const mostNamed = 10;

function makeDirectory(path: string): void {
	try {
		makeFolders(path);
	} catch (error) {
		refuseDirectory(error, path);
	}
}

/** Each file is there whole or not at all. */
async function write(directory: string, { folder, differences }: Pulled): Promise<void> {
	const path = join(directory, folder);
	makeDirectory(path);
	for (const { path, wanted, isThere } of differences) {
		if (wanted === null) {
			await rm(path, { force: true });
			continue;
		}
		const file = await createOutputFile(path, isThere ? 'replace' : 'refuse');
		try {
			await file.write(wanted);
			await file.finish();
		} finally {
			await file.discard();
		}
	}
}
