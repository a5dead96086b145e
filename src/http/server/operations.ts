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
import type { PathIds, Query } from './match.js';

interface OperationInput {
	ids: PathIds;
	query: Query;
	body: unknown;
	call: Call;
}

export interface ExtendedApi {
	api: Api;
	ext: Extensions;
	encoded: EncodedReads;
}

type Values = Record<string, unknown>;
type Method = (...args: unknown[]) => Promise<unknown>;

interface Plan {
	method(api: ExtendedApi): Method;
	names: readonly string[];
	options: readonly (readonly [string, string])[];
	taken: ReadonlySet<string>;
	parameters: readonly (readonly [string, Parameter])[];
	body: Body | null;
	isPage: boolean;
	under: string | undefined;
}

const plans = new Map<OperationName, Plan>();

function planOf(name: OperationName): Plan {
	const operation: Operation = operations[name];
	const names = argumentNames(operation);
	const options = Object.entries(operation.options ?? {});
	const plan: Plan = {
		method: methodOf(name),
		names,
		options,
		taken: new Set([...names, ...options.map(([key]) => key)]),
		parameters: Object.entries(operation.query ?? {}),
		body: operation.body === undefined ? null : bodies[operation.body],
		isPage: operation.query?.['page'] !== undefined,
		under: operation.answer?.under,
	};
	plans.set(name, plan);
	return plan;
}

export async function perform(
	name: OperationName,
	api: ExtendedApi,
	input: OperationInput,
): Promise<unknown> {
	const plan = plans.get(name) ?? planOf(name);
	const method = plan.method(api);
	const args = name === 'ext.messages.progress' ? [scopeOf(input.query)] : argumentsOf(plan, input);
	if (plan.isPage) {
		const filter = args.pop() as object; // the last argument is `input`
		return readPage(input.query, (page) => pageOf(method(...args, { ...filter, ...page }, input.call)));
	}
	const result = await method(...args, input.call);
	return plan.under === undefined ? result : { [plan.under]: result };
}

const pageOf = (answer: Promise<unknown>) => answer as Promise<Page<unknown, { length: number }>>;

function methodOf(name: OperationName): Plan['method'] {
	if (name === 'subscribers.page') return ({ encoded }) => bound(encoded, 'page');
	if (name === 'ext.exports.slice') return ({ encoded }) => bound(encoded, 'slice');
	if (name === 'ext.tuples.slice') return ({ encoded }) => bound(encoded, 'tuples');
	const isExtension = name.startsWith('ext.');
	const [group = '', verb] = name.slice(isExtension ? 4 : 0).split('.');
	if (verb === undefined) return ({ api }) => bound(api, group);
	if (name.startsWith('subscribers.'))
		return ({ api }) =>
			(listId, ...args) =>
				bound(api.subscribers(Number(listId)), verb)(...args);
	return ({ api, ext }) => {
		const groups = (isExtension ? ext : api) as unknown as Readonly<Record<string, object>>;
		return bound(groups[group] ?? {}, verb);
	};
}

function bound(owner: object, verb: string): Method {
	return (...args) => (owner as Readonly<Record<string, Method>>)[verb]?.(...args) as Promise<unknown>;
}

function argumentsOf({ names, options, taken, parameters, body }: Plan, input: OperationInput): unknown[] {
	const outside: Values = { ...input.ids };
	if (parameters.length > 0) readQuery(parameters, input.query, outside);
	const inside: Values = body?.check === undefined ? {} : checkBody(body, input.body);
	for (const [key, option] of options) {
		const value = outside[key] ?? inside[key];
		if (value !== undefined) Object.assign(input.call, { [option]: value });
	}
	return names.map((key) => {
		if (key === 'query') return restOf(outside, taken);
		if (key === 'body') return givenRest(body, input.body);
		if (key !== 'input') return outside[key] ?? inside[key] ?? null;
		const isChecked = body === null || body.check !== undefined;
		return isChecked ? { ...restOf(outside, taken), ...restOf(inside, taken) } : input.body;
	});
}

function restOf(values: Values, taken: ReadonlySet<string>): Values {
	return Object.fromEntries(Object.entries(values).filter(([key]) => !taken.has(key)));
}

function checkBody({ check }: Body, body: unknown): Values {
	const parsed = check?.parse(body, 'create');
	if (parsed?.kind === 'invalid') throw invalid(parsed.errors);
	return Object.fromEntries(Object.entries(parsed?.value ?? {}).filter(([, value]) => value !== null));
}

/** The store compares the result with the body of a later call. */
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
	// Passes a blank word on, so that the API refuses it instead of returning all rows.
	word: (query, name) => (query.text(name) === undefined ? undefined : (query.filter(name) ?? '')),
	page: () => undefined,
};

function readQuery(parameters: Plan['parameters'], query: Query, into: Values): void {
	const errors: FieldErrors = {};
	for (const [name, { kind, words, default: fallback }] of parameters) {
		const value = readers[kind](query, name) ?? fallback;
		if (value === undefined) continue;
		if (words !== undefined && !words.includes(String(value)))
			errors[name] = [{ code: 'invalid_choice', message: notAChoice(String(value)) }];
		into[name] = value;
	}
	if (Object.keys(errors).length > 0) throw invalid(errors);
}

function scopeOf(query: Query): Values {
	const submission = query.filter('submission');
	const campaign = query.filter('campaign');
	if (submission !== undefined) return { submission };
	if (campaign !== undefined) return { campaign };
	throw invalid({ submission: [{ code: 'required', message: texts.required }] });
}

async function readPage<P extends Page<unknown, { length: number }>>(
	query: Query,
	read: (request: PageRequest) => Promise<P>,
): Promise<P> {
	const page_size = query.integer('page_size');
	const size = page_size === undefined ? {} : { page_size };
	if (query.text('page') === 'last') {
		// DRF accepts `?page=last`. The first page gives the number of pages.
		const first = await read({ ...size });
		if (first.next === null) return relink(query, first);
		return relink(query, await read({ ...size, page: Math.ceil(first.count / first.results.length) }));
	}
	const page = query.integer('page');
	return relink(query, await read({ ...size, ...(page !== undefined && { page }) }));
}

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
