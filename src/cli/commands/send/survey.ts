/**
 * What a dry run of `send --batch` finds without staging anything: each request is read as a job would read it, and whoever
 * is in it twice is found by 64 bits of a hash, 11 to 21 bytes a recipient. Templates and lists of requests are looked up
 * only where they are staged.
 */
import { emailKey } from '../../../api/address.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { RequestRow } from '../../../api/mailings.js';
import { sendFields } from '../../../api/messages.js';
import { isRecord } from '../../../api/schema/python.js';
import { usedVariables } from '../../../content/variable-names.js';
import { AddressSet } from '../../../jobs/foreign/address-set.js';
import { checkRequest } from '../../../jobs/foreign/mailings/requests.js';
import type { CommandContext } from '../../context.js';
import { walk } from '../../walk.js';
import type { OpenRows } from './source.js';

/** What is in a file of requests. */
export interface RequestCounts {
	requests: number;
	/** Addresses that would be sent to. */
	recipients: number;
	/** Those in it once more, for the same message. */
	duplicates: number;
	/** Requests and recipients that would be refused; duplicates are among them. */
	rejected: number;
	/** The first of them, in words. */
	findings: string[];
}

export interface SurveyHow {
	/** `first`: no further than the first request that can be sent. */
	how: 'first' | 'all';
	/** A variable without a value refuses. */
	strict: boolean;
}

/** The first request that can be sent, null if there is none, and the counts. */
export async function surveyRequests(
	cx: CommandContext,
	lines: OpenRows<RequestRow>,
	{ how, strict }: SurveyHow,
): Promise<{ first: SendRequest | null; counts: RequestCounts }> {
	const counts: RequestCounts = { requests: 0, recipients: 0, duplicates: 0, rejected: 0, findings: [] };
	const met = new AddressSet();
	const known = how === 'all' ? await knownTo(cx) : null;
	let first: SendRequest | null = null;
	for await (const row of lines.rows) {
		counts.requests += 1;
		const found = findingsOf(row, { known, strict, isNew: (key) => met.add(key) });
		counts.recipients += found.recipients;
		counts.duplicates += found.duplicates;
		counts.rejected += found.texts.length;
		const room = mostFindings - counts.findings.length;
		counts.findings.push(...found.texts.slice(0, room).map((text) => `line ${row.line}: ${text}`));
		if (first === null && found.recipients > 0) first = checkedRequest(row.request);
		if (first !== null && how === 'first') break;
	}
	return { first, counts };
}

/** The first of what a dry run found, for a line. */
export function reasons({ findings, rejected }: RequestCounts): string {
	const left = rejected - findings.length;
	return `${findings.join('; ')}${left > 0 ? `; and ${left.toLocaleString('en-US')} more` : ''}`;
}

const mostFindings = 10;

/** What only the service knows. `senders` null: it does not tell. */
interface Known {
	senders: ReadonlySet<string> | null;
	fields: ReadonlySet<string>;
	isOurs: boolean;
}

async function knownTo(cx: CommandContext): Promise<Known> {
	const api = await cx.api();
	const { ext } = await api.capabilities();
	const fields = new Set<string>();
	for await (const { variable } of walk(api.fields, {}, { signal: cx.signal })) fields.add(variable);
	if (ext.senders === undefined) return { senders: null, fields, isOurs: ext.mailings !== undefined };
	const senders = new Set<string>();
	for await (const { email } of walk(ext.senders, {}, { signal: cx.signal })) senders.add(emailKey(email));
	return { senders, fields, isOurs: ext.mailings !== undefined };
}

interface Found {
	recipients: number;
	duplicates: number;
	texts: string[];
}

function findingsOf(
	row: RequestRow,
	{ known, strict, isNew }: { known: Known | null; strict: boolean; isNew: (key: string) => boolean },
): Found {
	const parsed = row.refused === undefined ? sendFields.parse(row.request) : null;
	if (parsed?.kind === 'valid' && known?.senders?.has(parsed.value.from_key) === false)
		return { recipients: 0, duplicates: 0, texts: ['from: Sender address is not verified.'] };
	const items = checkRequest(plain(row, known), {
		// A field may have a value for whoever it is: the service knows.
		usedVariables: (texts) => usedVariables(texts).filter((name) => known?.fields.has(name) !== true),
		isStrict: strict,
		isNew,
	});
	const bad = items.flatMap((item) => ('code' in item ? [item] : []));
	const good = items.flatMap((item) => ('code' in item ? [] : [item.to].flat()));
	return {
		recipients: good.length,
		duplicates: bad.filter(({ code }) => code === 'duplicate').length,
		texts: bad.map(({ error }) => error),
	};
}

/** Keys of ours are refused elsewhere, and elsewhere only. */
function plain(row: RequestRow, known: Known | null): RequestRow {
	if (!isRecord(row.request) || known?.isOurs === false) return row;
	const { list_id: _list, campaign_unique_id: _campaign, ...request } = row.request;
	return { ...row, request };
}

/** Checked just before by the schema of send requests. */
function checkedRequest(request: unknown): SendRequest | null {
	return isRecord(request) ? (request as unknown as SendRequest) : null;
}
