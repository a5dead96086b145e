import { readdir, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { need } from '../../../api/capabilities.js';
import type { Template } from '../../../api/records.js';
import { makeFolders } from '../../../jobs/folders.js';
import { createOutputFile } from '../../../tables/output-file.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { didYouMean } from '../../frame/help.js';
import { counted } from '../../render/units.js';
import { keepAll, walk } from '../../verbs/listing.js';
import { missing } from '../../verbs/resolve.js';
import { refuseFindings } from '../apply/plan.js';
import { folderNames, markedFolder, sameFolder } from './folder-names.js';
import {
	fileOf,
	foretell,
	outcomeColumns,
	type Part,
	parts,
	readFolders,
	readPart,
	refuseDirectory,
	type TemplateFolder,
	tally,
} from './folders.js';

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
	const isNamed = ({ id, name }: Template) => names.includes(name) || names.includes(id);
	const unknown = names.find((one) => !all.some(({ id, name }) => one === name || one === id));
	if (unknown !== undefined) {
		const near = didYouMean(
			unknown,
			all.map(({ name }) => name),
		);
		throw missing('template', unknown, near ?? mailctl('templates', 'list'));
	}
	const folders = await foldersThere(directory);
	const places = placesOf(all, folders);
	const pulled: Pulled[] = [];
	for (const template of names.length === 0 ? all : all.filter(isNamed)) {
		const folder = places.get(template.name) ?? markedFolder(template.name);
		pulled.push(await compare(directory, { folder, template, folders }));
	}
	const outcomes = pulled.map(({ name, folder, isNew, differences }) => {
		const action = isNew ? 'created' : differences.length === 0 ? 'unchanged' : 'updated';
		return { action, name, folder, files: differences.map(({ part }) => fileOf[part]) } as const;
	});
	if (cx.dryRun) return foretell(cx, 'pull', { directory, outcomes });
	if (!force) await agree(cx, directory, pulled);
	makeDirectory(directory);
	for (const { folder, differences } of pulled) {
		cx.signal.throwIfAborted();
		makeDirectory(join(directory, folder));
		for (const difference of differences) await write(difference);
	}
	await cx.out.rows(outcomes, outcomeColumns, { all: true });
	await cx.note(`pulled to ${directory}: ${tally(outcomes)}`);
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

async function compare(
	directory: string,
	{ folder, template, folders }: { folder: string; template: Template; folders: readonly TemplateFolder[] },
): Promise<Pulled> {
	const { name, html_body, text_body } = template;
	const entry = folders.find((one) => one.folder === folder);
	if (entry?.isFolder === false) refuseFindings(entry.findings);
	const wanted: Record<Part, string | null> = {
		// The folder alone can say line breaks.
		name: /[\r\n]/.test(name) ? null : `${name}\n`,
		html_body: html_body === '' ? null : html_body,
		// One of them is there, though it is empty.
		text_body: text_body === '' && html_body !== '' ? null : text_body,
	};
	const differences: Difference[] = [];
	for (const part of parts) {
		const path = join(directory, folder, fileOf[part]);
		const there = await readPart(path);
		// A folder that a person made needs no subject.
		const isRead = there === null || entry?.findings.length === 0;
		const isSaid = part === 'name' && isRead && entry?.values.name === name;
		const text = wanted[part];
		const isSame =
			there === null
				? text === null
				: there.equals(Buffer.from(text ?? '')) && (text !== null || part !== 'name');
		if (!isSaid && !isSame) differences.push({ part, path, wanted: text, isThere: there !== null });
	}
	return { name, folder, isNew: entry === undefined, differences };
}

const mostNamed = 10;

async function agree(cx: CommandContext, directory: string, pulled: readonly Pulled[]): Promise<void> {
	const lost = pulled.flatMap(({ differences }) => differences.filter(({ isThere }) => isThere));
	if (lost.length === 0) return;
	const named = lost.slice(0, mostNamed).map(({ path }) => relative(directory, path));
	const more = lost.length > mostNamed ? ` and ${lost.length - mostNamed} more` : '';
	const files = `${counted(lost.length, 'file')} that ${lost.length === 1 ? 'differs' : 'differ'}`;
	await cx.confirm({ kind: 'mild', what: `replace ${files} in ${directory}: ${named.join(', ')}${more}` });
}

function makeDirectory(path: string): void {
	try {
		makeFolders(path);
	} catch (error) {
		refuseDirectory(error, path);
	}
}

/** The file is there whole or not at all. */
async function write({ path, wanted, isThere }: Difference): Promise<void> {
	if (wanted === null) return rm(path, { force: true });
	const file = await createOutputFile(path, isThere ? 'replace' : 'refuse');
	try {
		await file.write(wanted);
		await file.finish();
	} finally {
		await file.discard();
	}
}
