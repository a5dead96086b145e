import { createHash } from 'node:crypto';
import { type Mailbox, parseMailbox } from './address.js';
import type { CampaignSource, CampaignSpec, RequestsSpec } from './campaigns.js';
import { canonicalJson } from './json.js';
import {
	type CheckedAudience,
	type CheckedContent,
	type CheckedSend,
	campaignFields,
	requestsFields,
} from './messages.js';

/** Two hashes. Equal `campaign`: the specs describe the same campaign. Equal `mail`: recipients get the same mail. */
export interface SpecIdentity {
	campaign: string;
	mail: string;
}

export function specIdentity(spec: CampaignSpec | RequestsSpec): SpecIdentity {
	const { seen, unseen } = identityOf(spec);
	const hashOf = (values: object) => createHash('sha256').update(canonicalJson(values)).digest('hex');
	return { campaign: hashOf({ ...seen, ...unseen }), mail: hashOf(seen) };
}

export function requestIdentity({ to: _, ...request }: CheckedSend): string {
	return canonicalJson(seenOf(request));
}

function identityOf(spec: CampaignSpec | RequestsSpec) {
	const { rows, ...how } = comparable(spec.source);
	if ('requests' in spec) {
		const parsed = requestsFields.parse(spec, 'create');
		if (parsed.kind === 'invalid') return { seen: { ...spec }, unseen: {} };
		const { requests, strict_vars } = parsed.value;
		return { seen: { requests, rows }, unseen: { strict_vars, ...how } };
	}
	const parsed = campaignFields.parse(spec);
	if (parsed.kind === 'invalid') return { seen: { ...spec }, unseen: {} };
	// Ignores `timing`, because users may change the time of sending until the release.
	const { strict_vars, audience, timing: _timing, list_id, ...content } = parsed.value;
	const { tag, disable_tracking } = content;
	const people = peopleOf(audience);
	return {
		seen: { ...seenOf(content), list_id, rows, ...people },
		unseen: { tag, strict_vars, lists: audience.lists, ...(disable_tracking && { disable_tracking }) },
	};
}

function peopleOf({ lists, ...conditions }: CheckedAudience): Readonly<Record<string, unknown>> {
	const sorted = Object.entries(conditions).map(
		([key, values]: [string, readonly (string | number)[]]) => [key, [...values].sort()] as const,
	);
	return {
		...(lists.length > 1 && { list_id: [...lists].sort((a, b) => a - b) }),
		...Object.fromEntries(sorted.filter(([, values]) => values.length > 0)),
	};
}

function seenOf(checked: CheckedContent): Readonly<Record<string, unknown>> {
	const { from, from_key: _, envelope, tag: _tag, campaign_unique_id: _campaign, ...rest } = checked;
	const { disable_tracking: _tracking, ...content } = rest;
	const { reply_to, cc, bcc, headers } = envelope;
	return {
		...content,
		from: mailboxText(from),
		reply_to: mailboxTexts(reply_to),
		cc: mailboxTexts(cc),
		bcc: mailboxTexts(bcc),
		headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
	};
}

function mailboxTexts(mailboxes: readonly string[]): string[] {
	return mailboxes.map((text) => mailboxText(parseMailbox(text))).sort();
}

function comparable(source: CampaignSource | undefined): { rows: CampaignSource | null; track?: string } {
	if (source === undefined) return { rows: null };
	const { path: _, track, ...rows } = source;
	return { rows, ...(track !== undefined && { track }) };
}

function mailboxText(mailbox: Mailbox | null): string {
	return mailbox === null ? '' : `${mailbox.name} <${mailbox.key}>`;
}
