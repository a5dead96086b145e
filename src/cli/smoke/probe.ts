/** Sends requests to a service, and compares its answers with the service document. */
import type { WireExchange, WireRequest, WireResponse } from '../../api/api.js';
import { backoff, parseRetryAfter, sleep } from '../../api/backoff.js';
import { type Clock, microsPerMs } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import { isRecord } from '../../api/json.js';
import type { RecordShape, Shape } from '../../api/schema/record.js';
import { canParseUrl } from '../../api/schema/url.js';

export interface Ask extends Pick<WireRequest, 'path' | 'token'> {
	method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
	body?: unknown;
	retries?: number;
}

export interface Answer
	extends Pick<WireRequest, 'method' | 'path'>,
		Pick<WireResponse, 'status' | 'headers'> {
	text: string;
	json: unknown;
}

export type Caller = (ask: Ask) => Promise<Answer>;

interface CallerOptions {
	exchange: WireExchange;
	retries: number;
	signal: AbortSignal;
	/** The caller replaces this token by asterisks in answers. */
	token: string | null;
	clock: Clock;
}

/** Time for a change to finish after the signal. An interrupted POST would leave a record with an unknown id. */
const changeGraceMs = 2_000;
const maxWaitMs = 60_000;

/**
 * For every method, retries 429, and 503 with Retry-After, because the service has done nothing. Retries lost
 * connections only for GET, PUT and DELETE. Returns other 5xx answers for the check to judge. Throws `ApiError` (code
 * `network`) for a lost connection, and `signal.reason` after an abort.
 */
export function createCaller({ exchange, retries, signal, token, clock }: CallerOptions): Caller {
	const late = after(signal, changeGraceMs);
	const askOnce = async ({ method, path, body, token: other }: Ask): Promise<Answer> => {
		const answer = await exchange({
			...{ method, path, signal: method === 'GET' ? signal : late },
			headers: { accept: 'application/json', 'content-type': 'application/json' },
			...(body !== undefined && { body: JSON.stringify(body) }),
			...(other !== undefined && { token: other }),
		});
		const { status, headers } = answer;
		const text = new TextDecoder().decode(answer.body);
		const masked = token === null || token.length < 4 ? text : text.replaceAll(token, '********');
		return { method, path, status, headers, text: masked, json: parse(text) };
	};
	return async (ask) => {
		const isRepeatable = ['GET', 'PUT', 'DELETE'].includes(ask.method);
		const most = Math.min(retries, ask.retries ?? retries);
		for (let attempt = 1; ; attempt += 1) {
			signal.throwIfAborted();
			const answer = await askOnce(ask).catch((error: unknown) => {
				signal.throwIfAborted();
				const isCut = error instanceof ApiError && error.code === 'network';
				if (attempt > most || !isRepeatable || !isCut) throw error;
				return null;
			});
			const after = answer?.headers['retry-after'];
			const waitMs = parseRetryAfter(after, clock.now() / microsPerMs) ?? backoff({ first: 200 }, attempt);
			if (answer !== null) {
				const isUnprocessed = answer.status === 429 || (answer.status === 503 && after !== undefined);
				if (!isUnprocessed || attempt > most || waitMs > maxWaitMs) return answer;
			}
			await sleep(waitMs, signal);
		}
	};
}

export function after(signal: AbortSignal, ms: number): AbortSignal {
	const later = new AbortController();
	const arm = () => void setTimeout(() => later.abort(signal.reason), ms).unref();
	if (signal.aborted) arm();
	else signal.addEventListener('abort', arm, { once: true });
	return later.signal;
}

function parse(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

export class Broken extends Error {}

/** The token lacks a scope. A check that only reads is then skipped instead of failed. */
export class Denied extends Broken {}

/** After this error, the run skips all further checks. */
export class Halted extends Broken {
	readonly why: keyof typeof whyHalted;
	constructor(why: keyof typeof whyHalted, message: string) {
		super(message);
		this.why = why;
	}
}

export const whyHalted = {
	unreachable: 'the service does not answer',
	elsewhere: 'another service answers',
	refused: 'the token is refused',
};

export class Skipped extends Error {}

export type Json = Readonly<Record<string, unknown>>;
export type Shapes = RecordShape<Readonly<Record<string, Shape<unknown>>>>;

/** `fault`: the answer violates the service document. `deviate`: the answer is unusual, but the document allows it. */
type Grade = 'fault' | 'deviate';

interface ReadPage {
	count: number | null;
	next: string | null;
	previous: string | null;
	results: readonly Json[];
}

const mostComplaints = 8;

export class Probe {
	readonly call: Caller;
	readonly faults: string[] = [];
	readonly deviations: string[] = [];

	constructor(call: Caller) {
		this.call = call;
	}

	fault(text: string): void {
		this.faults.push(text);
	}

	deviate(text: string): void {
		if (!this.deviations.includes(text)) this.deviations.push(text);
	}

	get(path: string): Promise<Answer> {
		return this.call({ method: 'GET', path });
	}

	post(path: string, body: Json): Promise<Answer> {
		return this.call({ method: 'POST', path, body });
	}

	async expect(ask: Ask, status: number): Promise<Answer> {
		const answer = await this.call(ask);
		if (answer.status !== status) throw unexpected(answer, status);
		return answer;
	}

	async object(path: string, change?: Pick<Ask, 'method' | 'body'>): Promise<Json> {
		return this.objectOf(await this.expect({ method: 'GET', path, ...change }, 200));
	}

	objectOf(answer: Answer): Json {
		if (isRecord(answer.json)) return answer.json;
		const type = answer.headers['content-type'] ?? 'no type';
		throw new Broken(`${said(answer)} something other than a JSON object (${type}): ${quoted(answer)}`);
	}

	refusal(answer: Answer, what: string, wanted: number): void {
		const { status, json } = answer;
		if (status < 300) throw new Broken(`${what} is accepted: ${said(answer)} ${status}`);
		if (status < 400 || status >= 500 || (status === 403 && wanted !== 401)) throw unexpected(answer, wanted);
		if (status !== wanted) this.deviate(`${what} gets a ${status}, not a ${wanted}`);
		if (!isRecord(json)) this.deviate(`the body of the ${status} for ${what} is not a JSON object`);
	}

	records(shape: Shapes, records: readonly unknown[], one: string): void {
		const seen = new Set<string>();
		for (const record of records)
			for (const [grade, key, text] of complaintsAbout(shape, record)) {
				if (seen.has(key) || seen.size === mostComplaints) continue;
				seen.add(key);
				const label = isRecord(record) && 'id' in record ? `${one} ${shown(record['id'])}` : one;
				this[grade](`${label}: ${text}`);
			}
	}

	values(grade: Grade, record: Json, expected: Json, when: string): void {
		for (const [key, value] of Object.entries(expected)) {
			if (isSame(record[key], value)) continue;
			const [found, wanted] = [record[key], value].map((one) =>
				key === 'password' && one !== '' ? '********' : shown(one),
			);
			this[grade](`${when}: ${key} is ${found}, not ${wanted}`);
		}
	}

	async page(path: string): Promise<ReadPage> {
		const body = await this.object(path);
		const { count, results } = body;
		if (!Array.isArray(results) || !results.every(isRecord))
			throw new Broken(`results is ${shown(results)}, not a list of objects`);
		const isCount = typeof count === 'number' && Number.isSafeInteger(count) && count >= 0;
		// The count is only shown to users. The links are enough to walk the pages.
		if (count === undefined) this.deviate('the page has no count');
		else if (!isCount) this.fault(`count is ${shown(count)}, not an integer of at least 0`);
		const link = (key: 'next' | 'previous') => {
			const value = body[key];
			if (typeof value === 'string' || value === null) return value;
			this.fault(`${key} is ${shown(value)}, neither a link nor null`);
			return null;
		};
		return { count: isCount ? count : null, next: link('next'), previous: link('previous'), results };
	}

	async *pages(path: string): AsyncGenerator<ReadPage> {
		const visited = new Set([1]);
		let page = await this.page(path);
		yield page;
		while (page.next !== null) {
			const number = pageNumber(page.next);
			if (visited.has(number))
				throw new Broken(`the pages of ${path} do not end: a link leads back to page ${number}`);
			visited.add(number);
			page = await this.page(withQuery(path, { page: number }));
			yield page;
		}
	}
}

export function withQuery(path: string, query: Readonly<Record<string, string | number>>): string {
	const words = Object.entries(query).map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`);
	return `${path}${path.includes('?') ? '&' : '?'}${words.join('&')}`;
}

/** Ignores the path of the link, because the client uses only its query (api-decisions 8). */
export function pageNumber(link: string): number {
	const base = 'http://localhost/';
	const text = canParseUrl(link, base) ? (new URL(link, base).searchParams.get('page') ?? '1') : '';
	if (!/^[1-9]\d{0,14}$/.test(text)) throw new Broken(`the link ${shown(link)} contains no page number`);
	return Number(text);
}

export function createdId({ status, json }: Answer): number | null {
	const id = isRecord(json) ? json['id'] : null;
	return status < 300 && typeof id === 'number' && Number.isSafeInteger(id) ? id : null;
}

function complaintsAbout(shape: Shapes, value: unknown): (readonly [Grade, key: string, text: string])[] {
	if (!isRecord(value)) return [['fault', '', `is ${shown(value)}, not an object`]];
	const found = Object.entries(shape.keys).flatMap(([key, of]) => {
		const one = value[key];
		const say = (grade: Grade, what: string) => [[grade, key, `${key} is ${what}`] as const];
		if (one === undefined) return of.presence === 'present' ? say('fault', 'missing') : [];
		if (!of.is(one)) return say('fault', `${shown(one)}, not ${of.kind}`);
		if (typeof one !== 'string') return [];
		const { enum: words, pattern } = of.schema() as { enum?: readonly unknown[]; pattern?: string };
		if (words?.includes(one) === false)
			return say('deviate', `${shown(one)}, not one of ${words.join(', ')}`);
		if (pattern === undefined || new RegExp(pattern).test(one)) return [];
		return say('deviate', `${shown(one)}, not <YYYY-MM-DDTHH:MM:SS.ffffff>`);
	});
	const more = Object.keys(value).filter((key) => !Object.hasOwn(shape.keys, key));
	return [...found, ...more.map((key) => ['deviate', key, `${key} is not in the service document`] as const)];
}

export function shown(value: unknown): string {
	return cut(value === undefined ? 'nothing' : JSON.stringify(value), 80);
}

function cut(text: string, length: number): string {
	return text.length <= length ? text : `${text.slice(0, length)}…`;
}

export function isSame(one: unknown, other: unknown): boolean {
	if (!isRecord(one) || !isRecord(other)) return JSON.stringify(one) === JSON.stringify(other);
	const keys = Object.keys(one);
	return keys.length === Object.keys(other).length && keys.every((key) => isSame(one[key], other[key]));
}

export function said({ method, path }: Answer): string {
	// Hide addresses, because build logs store reports.
	return `${method} ${path.replaceAll(/(email__\w+=)[^&]*/g, '$1…')} answered`;
}

export function unexpected(answer: Answer, status: number): Broken {
	if (answer.status === 403) return new Denied(`the token does not permit this request: ${said(answer)} 403`);
	const body = answer.text.trim() === '' ? '' : `: ${quoted(answer)}`;
	return new Broken(`${said(answer)} ${answer.status}, not ${status}${body}`);
}

function quoted({ text }: Answer): string {
	return cut(text.trim(), 160);
}
