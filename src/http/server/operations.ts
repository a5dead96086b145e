/** Every operation as one call of the `Api`: decode, one call, encode, by the table of operations. The Api checks the values. */
import type { Api, Call, PageRequest } from '../../api/api.js';
import { type Body, bodies } from '../../api/bodies.js';
import type { Extensions } from '../../api/capabilities.js';
import { type FieldErrors, invalid } from '../../api/errors.js';
import type { EncodedReads } from '../../api/exports.js';
import { isRecord, withoutExactNumbers } from '../../api/json.js';
import {
	argumentNames,
	type Operation,
	type OperationName,
	operations,
	type Parameter,
} from '../../api/operations.js';
import type { Page } from '../../api/records.js';
import { notAChoice, texts } from '../../api/schema/texts.js';
import type { Query } from './query.js';

/** The decoded values of a request. `body` is parsed JSON of any shape, or a file. */
interface OperationInput {
	ids: Readonly<Record<string, number>>;
	uuids: Readonly<Record<string, string>>;
	query: Query;
	body: unknown;
	call: Call;
}

/** The Api with every extension; only the engine has it. */
export interface ExtendedApi {
	api: Api;
	ext: Extensions;
	encoded: EncodedReads;
}

type Values = Record<string, unknown>;
type Method = (...args: unknown[]) => Promise<unknown>;

/** Resolves with the body of the response; `undefined` = none. */
export async function perform(
	name: OperationName,
	api: ExtendedApi,
	input: OperationInput,
): Promise<unknown> {
	const operation: Operation = operations[name];
	const method = methodOf(name, api);
	const args = argumentsOf(name, operation, input);
	if (operation.query?.['page'] !== undefined) {
		const filter = args.pop() as object; // `input`, the last argument
		return readPage(input.query, (page) => pageOf(method(...args, { ...filter, ...page }, input.call)));
	}
	const result = await method(...args, input.call);
	const under = operation.answer?.under;
	return under === undefined ? result : { [under]: result };
}

/** What a method of a collection answers. */
const pageOf = (answer: Promise<unknown>) => answer as Promise<Page<unknown, { length: number }>>;

/** `ext.messages.get` is `ext.messages.get`, `lists.get` is `api.lists.get`; some reads have their answer encoded. */
function methodOf(name: OperationName, { api, ext, encoded }: ExtendedApi): Method {
	if (name === 'subscribers.page') return bound(encoded, 'page');
	if (name === 'ext.exports.slice') return bound(encoded, 'slice');
	if (name === 'ext.tuples.slice') return bound(encoded, 'tuples');
	const isExtension = name.startsWith('ext.');
	const [group = '', verb] = name.slice(isExtension ? 4 : 0).split('.');
	if (verb === undefined) return bound(api, group);
	if (name.startsWith('subscribers.'))
		return (listId, ...args) => bound(api.subscribers(Number(listId)), verb)(...args);
	return bound(((isExtension ? ext : api) as unknown as Readonly<Record<string, object>>)[group] ?? {}, verb);
}

/** The names of the table are those of the Api. */
function bound(owner: object, verb: string): Method {
	return (owner as Readonly<Record<string, Method>>)[verb]?.bind(owner) as Method;
}

function argumentsOf(name: OperationName, operation: Operation, input: OperationInput): unknown[] {
	if (name === 'ext.messages.progress') return [scopeOf(input.query)];
	const { options = {} } = operation;
	const args = argumentNames(operation);
	const outside: Values = { ...input.ids, ...input.uuids, ...readQuery(operation.query ?? {}, input.query) };
	const body: Body | null = operation.body === undefined ? null : bodies[operation.body];
	const inside: Values = body?.check === undefined ? {} : checkBody(body, input.body);
	const take = (key: string): unknown => {
		const from = key in outside ? outside : inside;
		const value = from[key];
		delete from[key];
		return value;
	};
	for (const [key, option] of Object.entries(options)) {
		const value = take(key);
		if (value !== undefined) Object.assign(input.call, { [option]: value });
	}
	const named = args.map((key) => (rests.has(key) ? undefined : (take(key) ?? null)));
	return args.map((key, index) => {
		if (key === 'query') return outside;
		if (key === 'body') return givenRest(body, input.body);
		if (key !== 'input') return named[index];
		return body === null || body.check !== undefined ? { ...outside, ...inside } : input.body;
	});
}

const rests: ReadonlySet<string> = new Set(['input', 'body', 'query']);

function checkBody({ check }: Body, body: unknown): Values {
	const parsed = check?.parse(body, 'create');
	if (parsed?.kind === 'invalid') throw invalid(parsed.errors);
	// Null is a value that is not given.
	return Object.fromEntries(Object.entries(parsed?.value ?? {}).filter(([, value]) => value !== null));
}

/** The spec is stored as it is given, and compared when the campaign is opened again. */
function givenRest(body: Body | null, given: unknown): unknown {
	const plain = withoutExactNumbers(given);
	if (!isRecord(plain)) return plain;
	return Object.fromEntries(Object.entries(plain).filter(([key]) => body?.apart?.includes(key) !== true));
}

const readers: Readonly<Record<Parameter['kind'], (query: Query, name: string) => unknown>> = {
	text: (query, name) => query.text(name),
	texts: (query, name) => query.texts(name),
	filter: (query, name) => query.filter(name),
	uuid: (query, name) => query.filter(name)?.toLowerCase(),
	exact: (query, name) => query.exact(name),
	integer: (query, name) => query.integer(name),
	whole: (query, name) => (Number.isNaN(query.integer(name)) ? undefined : query.integer(name)),
	id: (query, name) => (query.filter(name) === undefined ? undefined : query.integer(name)),
	boolean: (query, name) => query.boolean(name),
	// A blank one is refused too: it would answer all rows.
	word: (query, name) => (query.text(name) === undefined ? undefined : (query.filter(name) ?? '')),
	page: () => undefined,
};

/** Throws `invalid` with every word that is not of its set. */
function readQuery(parameters: Readonly<Record<string, Parameter>>, query: Query): Values {
	const values: Values = {};
	const errors: FieldErrors = {};
	for (const [name, { kind, words, default: fallback }] of Object.entries(parameters)) {
		const value = readers[kind](query, name) ?? fallback;
		if (value === undefined) continue;
		if (words !== undefined && !words.includes(String(value)))
			errors[name] = [{ code: 'invalid_choice', message: notAChoice(String(value)) }];
		values[name] = value;
	}
	if (Object.keys(errors).length > 0) throw invalid(errors);
	return values;
}

/** Of one submission, or of one campaign. Throws `invalid` where neither is named. */
function scopeOf(query: Query): Values {
	const submission = query.filter('submission');
	const campaign = query.filter('campaign');
	if (submission !== undefined) return { submission };
	if (campaign !== undefined) return { campaign };
	throw invalid({ submission: [{ code: 'required', message: texts.required }] });
}

/** The page of a query, by number or `last`. Throws the errors of `read`: `not_found` "Invalid page." for any other page. */
async function readPage<P extends Page<unknown, { length: number }>>(
	query: Query,
	read: (request: PageRequest) => Promise<P>,
): Promise<P> {
	const page_size = query.integer('page_size');
	const size = page_size === undefined ? {} : { page_size };
	if (query.text('page') === 'last') {
		// `?page=last` is DRF's. The first page shows the number of pages.
		const first = await read({ ...size });
		if (first.next === null) return relink(query, first);
		return relink(query, await read({ ...size, page: Math.ceil(first.count / first.results.length) }));
	}
	const page = query.integer('page');
	return relink(query, await read({ ...size, ...(page !== undefined && { page }) }));
}

/** Base and path of a link are the Api's; its query is the request's with another page. */
function relink<P extends Page<unknown, unknown>>(query: Query, page: P): P {
	const [next, previous] = [link(query, page.next), link(query, page.previous)];
	return { ...page, next, previous };
}

function link(query: Query, url: string | null): string | null {
	if (url === null) return null;
	const at = url.indexOf('?');
	const place = at === -1 ? url : url.slice(0, at);
	const number = at === -1 ? null : new URLSearchParams(url.slice(at)).get('page');
	const text = query.withPage(number === null ? null : Number(number));
	return text === '' ? place : `${place}?${text}`;
}
