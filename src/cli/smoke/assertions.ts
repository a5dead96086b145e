/** The demands of the checks on an answer, in the words of the report. */
import { isRecord } from '../../api/json.js';
import type { Answer, Ask } from './caller.js';
import { Broken, type Probe } from './model.js';
import { type Complaint, complaintsAbout, type Json, type Shape, shown } from './shapes.js';

/** How many different complaints one check lists. */
const maxComplaints = 8;

/** Asks, and demands the documented status. Throws `Broken`. */
export async function expectStatus(probe: Probe, ask: Ask, status: number): Promise<Answer> {
	const answer = await probe.call(ask);
	if (answer.status !== status) throw new Broken(unexpected(answer, status));
	return answer;
}

/** The same for an answer that is a JSON object. */
export async function expectObject(probe: Probe, ask: Ask, status: number): Promise<Json> {
	return objectOf(probe, await expectStatus(probe, ask, status));
}

/** The JSON object of an answer. Throws `Broken`. */
export function objectOf(probe: Probe, answer: Answer): Json {
	const type = answer.headers['content-type'] ?? 'none';
	if (answer.json === undefined)
		throw new Broken(`${said(answer)} a body that is no JSON (${type}): ${quoted(answer)}`);
	if (!isRecord(answer.json)) throw new Broken(`${said(answer)} JSON that is no object: ${quoted(answer)}`);
	if (!/^application\/([\w.-]+\+)?json\b/i.test(type)) probe.deviate(`JSON comes with Content-Type ${type}`);
	return answer.json;
}

/** The answer is a refusal: a 4xx, the decided one or another. `what` completes "… is accepted". Throws `Broken`. */
export function expectRefusal(
	probe: Probe,
	answer: Answer,
	{ what, statuses }: { what: string; statuses: readonly number[] },
): void {
	const { status } = answer;
	if (status < 300) throw new Broken(`${what} is accepted: ${said(answer)} ${status}`);
	if (status < 400 || status >= 500) throw new Broken(`${what}: ${unexpected(answer, statuses[0] ?? 400)}`);
	if (!statuses.includes(status)) probe.deviate(`${what} is a ${status}, not a ${statuses.join(' or ')}`);
	if (!isRecord(answer.json))
		probe.deviate(
			`the body of the ${status} for ${what} is no JSON object (${answer.headers['content-type'] ?? 'no type'})`,
		);
}

/** Faults and deviations of one record. */
export function expectRecord(probe: Probe, shape: Shape, record: unknown, label: string): void {
	tell(probe, complaintsAbout(shape, record), label);
}

/** The same of many; each complaint once, with the first record it was met at. */
export function expectRecords(probe: Probe, shape: Shape, records: readonly unknown[], one: string): void {
	const seen = new Map<string, { complaint: Complaint; label: string }>();
	for (const record of records) {
		const id = isRecord(record) ? record['id'] : undefined;
		for (const complaint of complaintsAbout(shape, record)) {
			const kind = complaint.text.replaceAll(/"[^"]*"/g, '"…"');
			if (!seen.has(kind)) seen.set(kind, { complaint, label: `${one} ${shown(id)}` });
		}
	}
	for (const { complaint, label } of [...seen.values()].slice(0, maxComplaints))
		tell(probe, [complaint], label);
	if (seen.size > maxComplaints) probe.fault(`and ${seen.size - maxComplaints} more of the kind`);
}

/** Keys whose values are not those expected, as faults or deviations. */
export function expectValues(
	tellOne: (text: string) => void,
	record: Json,
	expected: Json,
	when: string,
): void {
	for (const [key, value] of Object.entries(expected)) {
		if (!isSame(record[key], value))
			tellOne(`${when}: ${key} is ${quotedValue(key, record[key])}, not ${quotedValue(key, value)}`);
	}
}

/** Passwords of webhooks are in no output. */
function quotedValue(key: string, value: unknown): string {
	return key === 'password' && value !== '' ? '********' : shown(value);
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

/** `GET /sub/lists/ answered`. */
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

function tell(probe: Probe, complaints: readonly Complaint[], label: string): void {
	for (const { grade, text } of complaints) {
		if (grade === 'fault') probe.fault(`${label}: ${text}`);
		else probe.deviate(`${label}: ${text}`);
	}
}
