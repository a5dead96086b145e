/** The service document's collections over HTTP: five operations each, one code for all. */
import type { Api, Call, Crud, PageRequest, Webhooks } from '../../api/api.js';
import type { Page, Subscriber } from '../../api/records.js';
import type { Operation } from '../routes.js';
import { type Check, decode, ignoreBody, pageOf, record } from './decode.js';
import { encodeQuery, encodeSubscriber, type QueryValues, withDefaults } from './encode.js';
import type { Line } from './line.js';
import { send } from './send.js';
import { decodeTest } from './test-result.js';

type Resource = 'lists' | 'subscribers' | 'fields' | 'webhooks';

interface Shape<T> {
	resource: Resource;
	/** Name of the id in the route. */
	key: 'list_id' | 'id';
	values?: Readonly<Record<string, number>>;
	check: Check;
	/** For a PUT. */
	defaults: Readonly<Record<string, unknown>>;
	encode?: (input: unknown) => unknown;
	/** Makes an odd record what it is meant to be. */
	mend?: (record: T) => T;
}

/** Service document, "Lists". */
export function lists(line: Line): Api['lists'] {
	return crud(line, {
		resource: 'lists',
		key: 'list_id',
		check: record({ id: 'id', name: 'text' }),
		defaults: {},
	});
}

/** Service document, "Additional fields". */
export function fields(line: Line): Api['fields'] {
	return crud(line, {
		resource: 'fields',
		key: 'id',
		check: record({ id: 'id', variable: 'text', name: 'text' }),
		defaults: {},
	});
}

/** What the commands rely on in a subscriber. */
export const subscriberCheck: Check = record({ id: 'id', email: 'text', is_active: 'boolean' });

/** Service document, "Subscribers". */
export function subscribers(line: Line, listId: number): ReturnType<Api['subscribers']> {
	return crud<Subscriber, never>(line, {
		resource: 'subscribers',
		key: 'id',
		values: { list_id: listId },
		check: subscriberCheck,
		defaults: { name: '', meta: {}, is_active: true },
		encode: encodeSubscriber,
		mend: mendMeta,
	});
}

/** Service document, "HTTP notifications". */
export function webhooks(line: Line): Webhooks {
	return {
		...crud(line, {
			resource: 'webhooks',
			key: 'id',
			check: record({ id: 'id', url: 'text', type: 'text' }),
			defaults: { is_auth_enabled: false, login: '', password: '' },
		}),
		test: async (id, call) =>
			decodeTest(await send(line, { operation: 'webhooks.test', values: { id }, call })),
	};
}

function crud<T, In>(line: Line, shape: Shape<T>): Crud<T, In> {
	const { resource, key, check, encode = (input) => input, mend = (one) => one } = shape;
	const ask = (verb: 'page' | 'create' | 'get' | 'replace' | 'patch' | 'delete') =>
		`${resource}.${verb}` as const;
	const at = (id: number) => ({ ...shape.values, [key]: id });
	const one = async (operation: Operation, more: { id?: number; body?: unknown; call: Call | undefined }) => {
		const values = more.id === undefined ? (shape.values ?? {}) : at(more.id);
		const { body, call } = more;
		return mend(decode<T>(await send(line, { operation, values, body, call }), check));
	};
	return {
		page: async (request, call) => {
			const query = pageQuery(request);
			const success = await send(line, { operation: ask('page'), values: shape.values ?? {}, query, call });
			const page = decode<Page<T>>(success, pageOf(check));
			return shape.mend === undefined ? page : { ...page, results: page.results.map(mend) };
		},
		get: (id, call) => one(ask('get'), { id, call }),
		create: (input, call) => one(ask('create'), { body: encode(input), call }),
		replace: (id, input, call) =>
			one(ask('replace'), { id, body: encode(withDefaults(shape.defaults, input)), call }),
		patch: (id, input, call) => one(ask('patch'), { id, body: encode(input), call }),
		delete: async (id, call) =>
			ignoreBody(await send(line, { operation: ask('delete'), values: at(id), call })),
	};
}

/** The link to a following page is taken as it is: what it holds beside a page's number is the deployment's business. */
export function pageQuery(request: PageRequest): string {
	const { query, ...values } = request;
	return query ?? encodeQuery(values as QueryValues); // filters are texts and booleans
}

/** Assumption: null is no meta, and a string holds its JSON, as in requests. */
export function mendMeta(subscriber: Subscriber): Subscriber {
	const meta: unknown = subscriber.meta;
	if (typeof meta === 'object' && meta !== null && !Array.isArray(meta)) return subscriber;
	return { ...subscriber, meta: typeof meta === 'string' ? parsedMeta(meta) : {} };
}

function parsedMeta(text: string): Record<string, unknown> {
	try {
		const value: unknown = JSON.parse(text);
		return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
	} catch {
		return {};
	}
}
