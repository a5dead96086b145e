/** One send request of a job, checked as a send call is, before any of them goes out. Pure. */
import { type EmailKey, emailKey } from '../../../api/address.js';
import { listFieldErrors } from '../../../api/errors.js';
import { builtInVariables } from '../../../api/fields.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { RequestRow } from '../../../api/mailings.js';
import { type CheckedSend, sendFields } from '../../../api/messages.js';
import { isRecord } from '../../../api/schema/python.js';
import { canonicalJson } from '../canonical.js';
import type { Item, RejectedItem } from './entries.js';
import { missingVariables, sayVariables } from './rows.js';

/** What a content says, wherever it stands. */
export interface Texts {
	subject: string;
	text: string | null;
	html: string | null;
}

export interface RequestChecks {
	usedVariables: (texts: Texts) => readonly string[];
	/** A variable without a value refuses the request; of no effect with a template, which does not tell. */
	isStrict: boolean;
	/** False: that recipient was found before, in a request that is alike but for `to`. */
	isNew: (key: EmailKey) => boolean;
}

/** The request with those of its recipients that are new, and the others each by himself. */
export function checkRequest({ request, line, refused }: RequestRow, checks: RequestChecks): Item[] {
	const place = line === undefined ? {} : { line };
	if (refused !== undefined) return [{ to: '', ...refused, ...place }];
	const reject = (code: string, error: string): Item[] => [
		{ to: addressesOf(request), code, error, ...place },
	];
	const parsed = sendFields.parse(request);
	if (parsed.kind === 'invalid') {
		const [first] = listFieldErrors(parsed.errors);
		return reject(first?.code ?? 'invalid', `${first?.path}: ${first?.message}`);
	}
	const checked = parsed.value;
	const ours = (['list_id', 'campaign_unique_id'] as const).find((name) => checked[name] !== null);
	if (ours !== undefined) return reject('invalid', `${ours}: this service does not know what that is.`);
	const missing = checks.isStrict ? missingIn(checked, checks) : [];
	if (missing.length > 0) return reject('missing_variable', `No value for ${sayVariables(missing)}.`);
	// Checked above: it is what a send call takes.
	const { to: _, ...rest } = request as SendRequest;
	return stage(rest, checked, { place, isNew: checks.isNew });
}

function stage(
	request: Omit<SendRequest, 'to'>,
	checked: CheckedSend,
	{ place, isNew }: { place: Pick<RejectedItem, 'line'>; isNew: RequestChecks['isNew'] },
): Item[] {
	const { to: people, ...alike } = checked;
	const content = canonicalJson(alike);
	const fresh: string[] = [];
	const twice: Item[] = [];
	for (const { address, key } of people) {
		if (isNew(`${key}\n${content}`)) fresh.push(address);
		else twice.push(duplicate(address, place));
	}
	return fresh.length === 0 ? twice : [{ to: fresh, request, ...place }, ...twice];
}

/** Somebody who stands in the job already, for the same mail. */
export function duplicate(to: string, place: Pick<RejectedItem, 'line'>): RejectedItem {
	return { to, code: 'duplicate', error: `${to} is in this mailing already.`, ...place };
}

/** What a request's recipients are compared by; the same as when it was staged. */
export function requestKeys(request: Omit<SendRequest, 'to'>, to: readonly string[]): EmailKey[] {
	const parsed = sendFields.parse({ ...request, to });
	if (parsed.kind === 'invalid') return to.map(emailKey);
	const { to: people, ...alike } = parsed.value;
	const content = canonicalJson(alike);
	return people.map(({ key }) => `${key}\n${content}`);
}

/** Fields of people are the service's to fill in; which there are is not looked up. */
function missingIn(
	{ subject, text_body, html_body, template_unique_id, context }: CheckedSend,
	{ usedVariables }: RequestChecks,
): string[] {
	if (template_unique_id !== null) return [];
	const used = usedVariables({ subject: subject ?? '', text: text_body, html: html_body });
	const known: readonly string[] = builtInVariables;
	return missingVariables(context, { used, shared: {} }).filter((name) => !known.includes(name));
}

function addressesOf(request: unknown): string {
	const to = isRecord(request) ? request['to'] : undefined;
	const addresses: readonly unknown[] = Array.isArray(to) ? to : [to];
	return addresses
		.filter((one) => typeof one === 'string')
		.join(', ')
		.slice(0, 320);
}
