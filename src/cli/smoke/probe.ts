/** What a check asks of a deployment, and what it demands of the answers, in the words of the report. */
import { isRecord } from '../../api/json.js';
import type { RecordShape, Shape } from '../../api/schema/record.js';
import { canParseUrl } from '../../api/schema/url.js';
import type { Answer, Ask, Caller } from './caller.js';

export class Broken extends Error {}

/** The token lacks a right for the check: no fault of the deployment. */
export class Denied extends Broken {
	readonly right: Right;
	constructor(right: Right, message: string) {
		super(message);
		this.right = right;
	}
}

export type Right = 'read' | 'send' | 'admin';

/** Nothing further can be checked: no answer at all, another service's answer, or the token is refused. */
export class Halted extends Broken {
	readonly why: HaltReason;
	constructor(why: HaltReason, message: string) {
		super(message);
		this.why = why;
	}
}
export type HaltReason = 'unreachable' | 'elsewhere' | 'refused';

/** The check does not apply here; the message is the reason. */
export class Skipped extends Error {}

export type Json = Readonly<Record<string, unknown>>;
export type Shapes = RecordShape<Readonly<Record<string, Shape<unknown>>>>;

/** A page whose envelope holds; `count` null where the deployment has none. */
export interface ReadPage {
	count: number | null;
	next: string | null;
	previous: string | null;
	results: readonly Json[];
}

/** How many different complaints about records one check lists. */
const mostComplaints = 8;

/** One for each check; methods that demand something throw `Broken`. */
export class Probe {
	readonly call: Caller;
	readonly faults: string[] = [];
	/** Differences where the document leaves room: listed, no failure. */
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
		if (answer.status !== status) throw new Broken(unexpected(answer, status));
		return answer;
	}

	async object(ask: Ask, status: number): Promise<Json> {
		return this.objectOf(await this.expect(ask, status));
	}

	objectOf(answer: Answer): Json {
		const type = answer.headers['content-type'] ?? 'none';
		if (answer.json === undefined)
			throw new Broken(`${said(answer)} a body that is not JSON (${type}): ${quoted(answer)}`);
		if (!isRecord(answer.json))
			throw new Broken(`${said(answer)} JSON that is not an object: ${quoted(answer)}`);
		if (!/^application\/([\w.-]+\+)?json\b/i.test(type)) this.deviate(`JSON comes with Content-Type ${type}`);
		return answer.json;
	}

	/** The answer is a 4xx, the decided one or another. `what` completes "… is accepted". */
	refusal(answer: Answer, what: string, wanted: number): void {
		const { status, headers, json } = answer;
		if (status < 300) throw new Broken(`${what} is accepted: ${said(answer)} ${status}`);
		if (status < 400 || status >= 500) throw new Broken(`${what}: ${unexpected(answer, wanted)}`);
		if (status !== wanted) this.deviate(`${what} is a ${status}, not a ${wanted}`);
		if (isRecord(json)) return;
		const type = headers['content-type'] ?? 'no type';
		this.deviate(`the body of the ${status} for ${what} is not a JSON object (${type})`);
	}

	/** Each complaint about the records once, with the first record it was met at. */
	records(shape: Shapes, records: readonly unknown[], one: string): void {
		const seen = new Map<string, () => void>();
		for (const record of records)
			for (const [grade, text] of complaintsAbout(shape, record)) {
				const label = isRecord(record) && 'id' in record ? `${one} ${shown(record['id'])}` : one;
				const kind = text.replaceAll(/"[^"]*"/g, '"…"');
				if (!seen.has(kind)) seen.set(kind, () => this[grade](`${label}: ${text}`));
			}
		const tells = [...seen.values()];
		for (const tell of tells.slice(0, mostComplaints)) tell();
		if (tells.length > mostComplaints) this.fault(`and ${tells.length - mostComplaints} more of the kind`);
	}

	/** Keys whose values are not those expected. Passwords of webhooks are in no output. */
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
		if (!Array.isArray(results)) throw new Broken(`results is ${shown(results)}, not a list`);
		const odd = results.find((one) => !isRecord(one));
		if (odd !== undefined) throw new Broken(`results hold ${shown(odd)}, which is not an object`);
		const isCount = typeof count === 'number' && Number.isSafeInteger(count) && count >= 0;
		// Clients show the count and do not need it to walk the pages.
		if (count === undefined) this.deviate('the envelope has no count');
		else if (!isCount) this.fault(`count is ${shown(count)}, not a number of objects`);
		return {
			count: isCount ? count : null,
			next: this.#link(body, 'next'),
			previous: this.#link(body, 'previous'),
			results,
		};
	}

	#link(body: Json, key: 'next' | 'previous'): string | null {
		const link = body[key];
		if (typeof link === 'string' || link === null) return link;
		if (link === undefined && key === 'previous') this.deviate('the envelope has no previous');
		else this.fault(`${key} is ${shown(link)}, neither a link nor null`);
		return null;
	}

	/** Every page, for a search; `most` bounds the cost on a big deployment. */
	async *pages(path: string, most: number): AsyncGenerator<ReadPage> {
		const visited = new Set([1]);
		let page = await this.page(path);
		yield page;
		for (let read = 1; page.next !== null && read < most; read += 1) {
			const number = pageNumber(page.next);
			if (visited.has(number))
				throw new Broken(`the pages of ${path} do not end: page ${number} comes again`);
			visited.add(number);
			page = await this.page(withQuery(path, { page: number }));
			yield page;
		}
	}

	/**
	 * Two pages one behind the other: links that lead on and back, rows that are not met twice, a count that fits. Asks for
	 * pages of one row where all fit in one. Throws `Skipped` without a second page.
	 */
	async paging(path: string): Promise<string> {
		const plain = await this.page(path);
		const small = plain.next === null && plain.results.length > 1 ? withQuery(path, { page_size: 1 }) : path;
		const first = small === path ? plain : await this.page(small);
		if (first.next === null) throw new Skipped(`one page holds all ${first.results.length}`);
		const number = pageNumber(first.next);
		if (number !== 2) throw new Broken(`next of the first page leads to page ${number}`);
		if (!/^https?:\/\//i.test(first.next)) this.deviate(`next is not an absolute URL: ${shown(first.next)}`);
		const second = await this.page(withQuery(small, { page: 2 }));
		if (second.previous === null) this.fault('the second page has no previous one');
		else if (pageNumber(second.previous) !== 1)
			this.fault(`previous of the second page leads to page ${pageNumber(second.previous)}`);
		if (second.next !== null && pageNumber(second.next) !== 3)
			this.fault(`next of the second page leads to page ${pageNumber(second.next)}`);
		if (second.results.length === 0) this.fault('the second page is empty');
		const known = new Set(first.results.map(({ id }) => id));
		const again = second.results.find(({ id }) => known.has(id));
		const ids = [...first.results, ...second.results].map(({ id }) => Number(id));
		if (again !== undefined) this.fault(`id ${shown(again['id'])} is on both pages`);
		else if (ids.some((id, at) => at > 0 && id <= (ids[at - 1] ?? 0))) this.deviate('ids are not ascending');
		const { count } = second;
		if (count !== null && second.next === null && count !== ids.length)
			this.fault(`count is ${count}, but both pages have ${ids.length}`);
		if (count !== null && second.next !== null && count <= ids.length)
			this.fault(`count is ${count}, but there is more behind ${ids.length}`);
		if (count !== null && first.count !== count)
			this.deviate(`count is ${first.count} on one page, ${count} on the next`);
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
	if (!/^\d{1,15}$/.test(text) || Number(text) < 1) throw new Broken(`the link ${shown(link)} names no page`);
	return Number(text);
}

/** A `fault` breaks the document; to `deviate` is within its freedom. */
type Complaint = readonly [grade: 'fault' | 'deviate', text: string];

/** Everything about one record; keys in the order of the shape. */
function complaintsAbout(shape: Shapes, value: unknown): Complaint[] {
	if (!isRecord(value)) return [['fault', `is ${shown(value)}, not an object`]];
	const found = Object.entries(shape.keys).flatMap(([key, of]): Complaint[] => {
		const one = value[key];
		if (one === undefined) return of.presence === 'present' ? [['fault', `${key} is missing`]] : [];
		if (!of.is(one)) return [['fault', `${key} is ${shown(one)}, not ${of.kind}`]];
		if (typeof one !== 'string') return [];
		const { enum: words, pattern } = of.schema as { enum?: readonly unknown[]; pattern?: string };
		if (words?.includes(one) === false)
			return [['deviate', `${key} is ${shown(one)}, not one of ${words.join(', ')}`]];
		if (pattern === undefined || new RegExp(pattern).test(one)) return [];
		const isIso = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?$/.test(one);
		return [[isIso ? 'deviate' : 'fault', `${key} is ${shown(one)}, not <YYYY-MM-DDTHH:MM:SS.ffffff>`]];
	});
	const more = Object.keys(value).filter((key) => !Object.hasOwn(shape.keys, key));
	return [...found, ...more.map((key): Complaint => ['deviate', `${key} is not a key of the document`])];
}

export function shown(value: unknown): string {
	const text = value === undefined ? 'nothing' : JSON.stringify(value);
	return text.length <= 80 ? text : `${text.slice(0, 80)}…`;
}

/** Equal as JSON; the order of keys does not count. */
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

/** `GET /sub/lists/ answered 500, not 200: …`, with the first 160 characters of the body. */
export function unexpected(answer: Answer, status: number): string {
	const body = answer.text.trim() === '' ? '' : `: ${quoted(answer)}`;
	return `${said(answer)} ${answer.status}, not ${status}${body}`;
}

function quoted({ text }: Answer): string {
	const trimmed = text.trim();
	return trimmed.length <= 160 ? trimmed : `${trimmed.slice(0, 160)}…`;
}
