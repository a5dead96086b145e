import type { Api } from '../../api/api.js';
import { need } from '../../api/capabilities.js';
import { ApiError } from '../../api/errors.js';
import type { Field, List, Sender, Template } from '../../api/records.js';
import { type Hint, mailctl } from '../frame/command-line.js';
import { CliError, UsageError } from '../frame/errors.js';
import { exits } from '../frame/exit.js';
import { didYouMean } from '../frame/words.js';
import { walk } from './listing.js';

/** How to read `<list>`. Without `--by`, a number is an id if a list has that id, otherwise a name. */
export type By = 'id' | 'name';

export const byOption = {
	kind: 'choice',
	choices: ['id', 'name'],
	summary: 'read <list> as an id or as a name',
} as const;

/** Throws an error with exit code 3 if no list matches, or with exit code 2 if several lists have the name. */
export async function resolveList(
	api: Api,
	text: string,
	options: { by?: By | undefined; signal: AbortSignal },
): Promise<List> {
	const { by, signal } = options;
	const isId = isRecordId(text);
	if (by === 'id' && !isId) throw new UsageError(`"${text}" is not an id`, { hint: 'use --by name' });
	if (isId && by !== 'name') {
		const found = await orNull(api.lists.get(Number(text), { signal }));
		if (found !== null) return found;
		if (by === 'id') throw missing('list', text, mailctl('lists', 'list'));
	}
	return findBy('list', text, walk(api.lists, {}, { signal }), ({ name }) => [name]);
}

export async function wordOfList(
	api: Api,
	{ id, name }: Pick<List, 'id' | 'name'>,
	signal: AbortSignal,
): Promise<string> {
	try {
		const found = await resolveList(api, name, { signal });
		return found.id === id && name.trim() === name ? name : String(id);
	} catch (error) {
		if (error instanceof CliError) return String(id);
		throw error;
	}
}

export async function resolveField(api: Api, text: string, signal: AbortSignal): Promise<Field> {
	const fields = walk(api.fields, {}, { signal });
	return findBy('field', text, fields, ({ id, variable }) => [variable, String(id)]);
}

export async function resolveSender(api: Api, text: string, signal: AbortSignal): Promise<Sender> {
	const senders = walk(api.senders, {}, { signal });
	const names = ({ id, from_email }: Sender) => [from_email.toLowerCase(), String(id)] as const;
	return findBy('sender', text.toLowerCase(), senders, names);
}

export async function resolveTemplate(api: Api, text: string, signal: AbortSignal): Promise<Template> {
	const templates = walk(await need(api, 'templates'), {}, { signal });
	return findBy('template', text, templates, ({ id, name }) => [name, id]);
}

/** Throws an error with exit code 2 if several lists have the name. For other kinds, returns the first match. */
async function findBy<T extends { id: number | string }>(
	kind: string,
	text: string,
	records: AsyncIterable<T>,
	names: (record: T) => readonly [string, ...string[]],
): Promise<T> {
	const found: T[] = [];
	const known: string[] = [];
	for await (const record of records) {
		const called = names(record);
		if (called.includes(text)) {
			if (kind !== 'list') return record;
			found.push(record);
		} else if (known.length < 1000) known.push(called[0]);
	}
	const [first, second] = found;
	if (first === undefined) throw missing(kind, text, didYouMean(text, known) ?? mailctl(`${kind}s`, 'list'));
	if (second === undefined) return first;
	throw new UsageError(`${found.length} ${kind}s are called "${text}"`, {
		hint: `give the id: ${found.map(({ id }) => id).join(', ')}`,
	});
}

export function missing(kind: string, text: string, hint: Hint): CliError {
	const shown = /^\d+$|"/.test(text) ? text : `"${text}"`;
	return new CliError('not_found', exits.notFound, `${kind} ${shown} not found`, { hint });
}

export async function orNull<T>(promise: Promise<T>): Promise<T | null> {
	try {
		return await promise;
	} catch (error) {
		if (error instanceof ApiError && error.code === 'not_found') return null;
		throw error;
	}
}

/** At most 15 digits, so that a JavaScript number is exact. */
export function isRecordId(text: string): boolean {
	return /^[1-9]\d{0,14}$/.test(text);
}

export function isUuid(text: string): boolean {
	return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}
