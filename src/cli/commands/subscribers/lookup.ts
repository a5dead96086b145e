import { emailKey } from '../../../api/address.js';
import type { Crud } from '../../../api/api.js';
import type { SubscriberInput } from '../../../api/inputs.js';
import type { List, Subscriber, SubscriberFilter } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { type Columns, column } from '../../render/columns.js';
import { walk } from '../../verbs/listing.js';
import { type By, byOption, isRecordId, missing, orNull, resolveList } from '../../verbs/resolve.js';

type Subscribers = Crud<Subscriber, SubscriberInput, SubscriberFilter>;

export const subscriberColumns: Columns<Subscriber> = [
	column('id', 'ID', { align: 'right' }),
	column('email', 'EMAIL', { isKept: 'address', isName: true }),
	column('name', 'NAME', { isKept: 'name' }),
	column('is_active', 'ACTIVE'),
	column('disable_reason', 'REASON', { isOptional: true }),
	column('meta', 'META', { wide: true }),
	column('is_email_verified', 'VERIFIED', { wide: true }),
	column('source', 'SOURCE', { wide: true }),
	column('opt_in_signed', 'OPTED IN', { time: 'text', wide: true }),
	column('list_id', 'LIST', { wide: true, align: 'right' }),
	column('date_created', 'CREATED', { time: 'text', wide: true }),
];

export const listOption = {
	list: {
		kind: 'text',
		short: 'l',
		placeholder: 'list',
		summary: 'select the list by id or exact name',
		env: 'MAILCTL_LIST',
		setting: 'list',
		required: true,
		of: 'list',
		ask: 'Which list:',
	},
	by: byOption,
} as const;

export const filterOptions = {
	emailContains: { kind: 'text', summary: 'filter by a part of the address; reads the whole list' },
	active: { kind: 'tri', off: 'inactive', summary: 'filter by state' },
	where: {
		kind: 'list',
		placeholder: 'CONDITION',
		summary: "filter: 'meta.city=Oslo', 'email~@example.com' (contains), 'created>7d'",
	},
} as const;

export function filterOf({
	emailContains,
	active,
}: {
	emailContains?: string | undefined;
	active?: boolean | undefined;
}): SubscriberFilter {
	return {
		...(emailContains !== undefined && { email__icontains: emailContains }),
		...(active !== undefined && { is_active: active }),
	};
}

export const subscriberArg = {
	name: 'subscriber',
	summary: 'an id or an e-mail address',
	of: 'subscriber',
	ask: 'Which subscriber:',
} as const;

export interface InList {
	list: List;
	subscribers: Subscribers;
}

export async function inList(
	cx: CommandContext,
	{ list, by }: { list: string; by?: By | undefined },
): Promise<InList> {
	const api = await cx.api();
	const found = await resolveList(api, list, { by, signal: cx.signal });
	return { list: found, subscribers: api.subscribers(found.id) };
}

export async function resolveSubscriber(
	cx: CommandContext,
	{ list, subscribers }: InList,
	text: string,
): Promise<Subscriber> {
	const found = await findSubscriber(cx, subscribers, text);
	if (found === null)
		throw missing(
			'subscriber',
			`${text} of list ${list.id} "${list.name}"`,
			mailctl('subscribers', 'find', text),
		);
	return found;
}

/** Compares addresses case-insensitively, even if the service does not. */
export async function findSubscriber(
	cx: CommandContext,
	subscribers: Subscribers,
	text: string,
): Promise<Subscriber | null> {
	const { signal } = cx;
	if (isRecordId(text)) return orNull(subscribers.get(Number(text), { signal }));
	const key = emailKey(text);
	// A service may ignore the filter, so compare its answers here.
	for await (const one of walk(subscribers, { email__exact: text }, { signal })) {
		if (emailKey(one.email) === key) return one;
	}
	const { ext } = await (await cx.api()).capabilities();
	if (ext.subscribers !== undefined) return null;
	const { searchAddress } = await import('../../../jobs/subscriber-pages.js');
	return searchAddress((request) => subscribers.page(request, { signal }), text);
}
