import type { WireExchange } from '../../api/api.js';
import { backoff, parseRetryAfter, sleep } from '../../api/backoff.js';
import { type Clock, microsPerMs } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import { isRecord } from '../../api/json.js';
import type { RecordShape, Shape } from '../../api/schema/record.js';
import { canParseUrl } from '../../api/schema/url.js';

export interface Ask {
	method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
	path: string;
	body?: unknown;
	token?: string | null;
	retries?: number;
}

export interface Answer {
	method: string;
	path: string;
	status: number;
	headers: Readonly<Record<string, string>>;
	text: string;
	json: unknown;
}

export type Caller = (ask: Ask) => Promise<Answer>;

interface CallerOptions {
	exchange: WireExchange;
	retries: number;
	/** Ends everything; changes that are under way have `changeGraceMs` more to be answered. */
	signal: AbortSignal;
	token: string | null;
	clock: Clock;
}

/** Milliseconds. A cut POST may have been carried out: an answer is cheaper than a search for its record. */
const changeGraceMs = 2_000;
const maxWaitMs = 60_000;
const pauses = { first: 200 };

/**
 * 429, and 503 with Retry-After, mean not processed and are repeated for every method; cuts only for GET, PUT and
 * DELETE. Another 5xx is not: a check is to find it. Throws `ApiError` network, and the signal's reason.
 */
export function createCaller({ exchange, retries, signal, token, clock }: CallerOptions): Caller {
	return async (ask) => {
		const isRepeatable = ['GET', 'PUT', 'DELETE'].includes(ask.method);
		const most = Math.min(retries, ask.retries ?? retries);
		for (let attempt = 1; ; attempt += 1) {
			signal.throwIfAborted();
			const answer = await exchangeJson(exchange, ask, signal).catch((error: unknown) => {
				signal.throwIfAborted();
				if (attempt <= most && isRepeatable && error instanceof ApiError && error.code === 'network')
					return null;
				throw error;
			});
			const pause = backoff(pauses, attempt);
			if (answer !== null) {
				const after = answer.headers['retry-after'];
				const isUnprocessed = answer.status === 429 || (answer.status === 503 && after !== undefined);
				const waitMs = parseRetryAfter(after, clock.now() / microsPerMs) ?? pause;
				if (!isUnprocessed || attempt > most || waitMs > maxWaitMs) return withoutToken(answer, token);
				await sleep(waitMs, signal);
			} else await sleep(pause, signal);
		}
	};
}

async function exchangeJson(exchange: WireExchange, ask: Ask, signal: AbortSignal): Promise<Answer> {
	const { method, path, body, token } = ask;
	const patience = delayed(signal, method === 'GET' ? 0 : changeGraceMs);
	try {
		const response = await exchange({
			...{ method, path, signal: patience.signal },
			headers: { accept: 'application/json', 'content-type': 'application/json' },
			...(body !== undefined && { body: JSON.stringify(body) }),
			...(token !== undefined && { token }),
		});
		const text = new TextDecoder().decode(response.body);
		return { method, path, status: response.status, headers: response.headers, text, json: parse(text) };
	} finally {
		patience.stop();
	}
}

function parse(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

function withoutToken(answer: Answer, token: string | null): Answer {
	if (token === null || token.length < 4) return answer;
	return { ...answer, text: answer.text.replaceAll(token, '********') };
}

export function delayed(signal: AbortSignal, ms: number): { signal: AbortSignal; stop: () => void } {
	const controller = new AbortController();
	let timer: NodeJS.Timeout | undefined;
	const arm = () => {
		timer = setTimeout(() => controller.abort(signal.reason), ms);
	};
	if (signal.aborted) arm();
	else signal.addEventListener('abort', arm, { once: true });
	return {
		signal: controller.signal,
		stop: () => {
			clearTimeout(timer);
			signal.removeEventListener('abort', arm);
		},
	};
}

export class Broken extends Error {}

/** The token lacks a right: checks that only read are skipped for it. */
export class Denied extends Broken {}

/** Nothing further can be checked: no answer at all, another service's answer, or the token is refused. */
export class Halted extends Broken {
	readonly why: HaltReason;
	constructor(why: HaltReason, message: string) {
		super(message);
		this.why = why;
	}
}
export type HaltReason = 'unreachable' | 'elsewhere' | 'refused';

export class Skipped extends Error {}

export type Json = Readonly<Record<string, unknown>>;
export type Shapes = RecordShape<Readonly<Record<string, Shape<unknown>>>>;

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

	async expect(ask: Ask, status: number): Promise<Answer> {
		const answer = await this.call(ask);
		if (answer.status !== status) throw unexpected(answer, status);
		return answer;
	}

	async object(ask: Ask, status: number): Promise<Json> {
		return this.objectOf(await this.expect(ask, status));
	}

	objectOf(answer: Answer): Json {
		const type = answer.headers['content-type'] ?? 'none';
		if (isRecord(answer.json)) return answer.json;
		const what =
			answer.json === undefined ? `a body that is not JSON (${type})` : 'JSON that is not an object';
		throw new Broken(`${said(answer)} ${what}: ${quoted(answer)}`);
	}

	refusal(answer: Answer, what: string, wanted: number): void {
		const { status, headers, json } = answer;
		if (status < 300) throw new Broken(`${what} is accepted: ${said(answer)} ${status}`);
		if (status < 400 || status >= 500 || (status === 403 && wanted !== 401)) throw unexpected(answer, wanted);
		if (status !== wanted) this.deviate(`${what} is a ${status}, not a ${wanted}`);
		if (isRecord(json)) return;
		const type = headers['content-type'] ?? 'no type';
		this.deviate(`the body of the ${status} for ${what} is not a JSON object (${type})`);
	}

	records(shape: Shapes, records: readonly unknown[], one: string): void {
		const seen = new Map<string, () => void>();
		for (const record of records)
			for (const [grade, text] of complaintsAbout(shape, record)) {
				const label = isRecord(record) && 'id' in record ? `${one} ${shown(record['id'])}` : one;
				const kind = text.replaceAll(/"[^"]*"/g, '"…"');
				if (!seen.has(kind)) seen.set(kind, () => this[grade](`${label}: ${text}`));
			}
		for (const tell of [...seen.values()].slice(0, mostComplaints)) tell();
	}

	values(grade: 'fault' | 'deviate', record: Json, expected: Json, when: string): void {
		for (const [key, value] of Object.entries(expected)) {
			if (isSame(record[key], value)) continue;
			const [found, wanted] = [record[key], value].map((one) =>
				key === 'password' && one !== '' ? '********' : shown(one),
			);
			this[grade](`${when}: ${key} is ${found}, not ${wanted}`);
		}
	}

	async page(path: string): Promise<ReadPage> {
		const body = await this.object({ method: 'GET', path }, 200);
		const { count, results } = body;
		if (!Array.isArray(results) || !results.every(isRecord))
			throw new Broken(`results is ${shown(results)}, not a list of objects`);
		const isCount = typeof count === 'number' && Number.isSafeInteger(count) && count >= 0;
		// Clients show the count and do not need it to walk the pages.
		if (count === undefined) this.deviate('the envelope has no count');
		else if (!isCount) this.fault(`count is ${shown(count)}, not a number of objects`);
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
				throw new Broken(`the pages of ${path} do not end: page ${number} comes again`);
			visited.add(number);
			page = await this.page(withQuery(path, { page: number }));
			yield page;
		}
	}

	async paging(path: string): Promise<string> {
		const plain = await this.page(path);
		const small = plain.next === null && plain.results.length > 1 ? withQuery(path, { page_size: 1 }) : path;
		const first = small === path ? plain : await this.page(small);
		if (first.next === null) throw new Skipped(`one page holds all ${first.results.length}`);
		const number = pageNumber(first.next);
		if (number !== 2) throw new Broken(`next of the first page leads to page ${number}`);
		const second = await this.page(withQuery(small, { page: 2 }));
		if (second.previous === null || pageNumber(second.previous) !== 1)
			this.fault('previous of the second page does not lead to the first');
		if (second.next !== null && pageNumber(second.next) !== 3)
			this.fault(`next of the second page leads to page ${pageNumber(second.next)}`);
		const known = new Set(first.results.map(({ id }) => id));
		const again = second.results.find(({ id }) => known.has(id));
		const ids = [...first.results, ...second.results].map(({ id }) => Number(id));
		if (again !== undefined) this.fault(`id ${shown(again['id'])} is on both pages`);
		else if (ids.some((id, at) => at > 0 && id <= (ids[at - 1] ?? 0))) this.deviate('ids are not ascending');
		return `${first.results.length} a page`;
	}
}

export function withQuery(path: string, query: Readonly<Record<string, string | number>>): string {
	const words = Object.entries(query).map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`);
	return `${path}${path.includes('?') ? '&' : '?'}${words.join('&')}`;
}

/** The page of a link; the client uses only its query (api-decisions 8). */
function pageNumber(link: string): number {
	const base = 'http://localhost/';
	const text = canParseUrl(link, base) ? (new URL(link, base).searchParams.get('page') ?? '1') : '';
	if (!/^[1-9]\d{0,14}$/.test(text)) throw new Broken(`the link ${shown(link)} names no page`);
	return Number(text);
}

/** A `fault` breaks the document; to `deviate` is within its freedom. */
type Complaint = readonly [grade: 'fault' | 'deviate', text: string];

function complaintsAbout(shape: Shapes, value: unknown): Complaint[] {
	if (!isRecord(value)) return [['fault', `is ${shown(value)}, not an object`]];
	const found = Object.entries(shape.keys).flatMap(([key, of]): Complaint[] => {
		const one = value[key];
		if (one === undefined) return of.presence === 'present' ? [['fault', `${key} is missing`]] : [];
		if (!of.is(one)) return [['fault', `${key} is ${shown(one)}, not ${of.kind}`]];
		if (typeof one !== 'string') return [];
		const { enum: words, pattern } = of.schema() as { enum?: readonly unknown[]; pattern?: string };
		if (words?.includes(one) === false)
			return [['deviate', `${key} is ${shown(one)}, not one of ${words.join(', ')}`]];
		if (pattern === undefined || new RegExp(pattern).test(one)) return [];
		return [['deviate', `${key} is ${shown(one)}, not <YYYY-MM-DDTHH:MM:SS.ffffff>`]];
	});
	const more = Object.keys(value).filter((key) => !Object.hasOwn(shape.keys, key));
	return [...found, ...more.map((key): Complaint => ['deviate', `${key} is not a key of the document`])];
}

export function shown(value: unknown): string {
	return cut(value === undefined ? 'nothing' : JSON.stringify(value), 80);
}

function cut(text: string, length: number): string {
	return text.length <= length ? text : `${text.slice(0, length)}…`;
}

export function isSame(a: unknown, b: unknown): boolean {
	if (Array.isArray(a) && Array.isArray(b))
		return a.length === b.length && a.every((item, at) => isSame(item, b[at]));
	if (!isRecord(a) || !isRecord(b)) return a === b;
	const keys = Object.keys(a);
	return (
		keys.length === Object.keys(b).length &&
		keys.every((key) => Object.hasOwn(b, key) && isSame(a[key], b[key]))
	);
}

export function said({ method, path }: Answer): string {
	// The value of a filter may be a person's address, and reports are kept in build logs.
	return `${method} ${path.replaceAll(/(email__\w+=)[^&]*/g, '$1…')} answered`;
}

export function unexpected(answer: Answer, status: number): Broken {
	if (answer.status === 403) return new Denied(`the token may not do that: ${said(answer)} 403`);
	const body = answer.text.trim() === '' ? '' : `: ${quoted(answer)}`;
	return new Broken(`${said(answer)} ${answer.status}, not ${status}${body}`);
}

function quoted({ text }: Answer): string {
	return cut(text.trim(), 160);
}
