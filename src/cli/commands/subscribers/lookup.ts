/** What the commands on subscribers share: the list they are in, their columns, how one is named. */
import { emailKey } from '../../../api/address.js';
import type { Crud } from '../../../api/api.js';
import type { SubscriberInput } from '../../../api/inputs.js';
import type { List, Subscriber, SubscriberFilter } from '../../../api/records.js';
import type { CommandContext } from '../../context.js';
import { isRecordId } from '../../ids.js';
import { type Columns, column } from '../../render/columns.js';
import { type By, byOption, missing, orNull, resolveList } from '../../resolve.js';
import { shellWord } from '../../shell-word.js';
import { walk } from '../../walk.js';

export type Subscribers = Crud<Subscriber, SubscriberInput, SubscriberFilter>;

export const subscriberColumns: Columns<Subscriber> = [
	column('id', 'ID', { align: 'right' }),
	column('email', 'EMAIL', { isName: true }),
	column('name', 'NAME'),
	column('is_active', 'ACTIVE'),
	column('disable_reason', 'REASON'),
	column('meta', 'META', { wide: true }),
	column('is_email_verified', 'VERIFIED', { wide: true }),
	column('source', 'SOURCE', { wide: true }),
	column('opt_in_signed', 'OPTED IN', { wide: true }),
	column('list_id', 'LIST', { wide: true, align: 'right' }),
	column('date_created', 'CREATED', { wide: true }),
];

export const listOption = {
	list: {
		kind: 'text',
		short: 'l',
		placeholder: 'list',
		summary: 'the list: an id or exact name',
		env: 'MAILCTL_LIST',
		setting: 'list',
		required: true,
		ask: 'Which list (id or name):',
	},
	by: byOption,
} as const;

export const subscriberArg = { name: 'subscriber', summary: 'an id or an e-mail address' } as const;

/** A list, and who is in it. */
export interface InList {
	list: List;
	subscribers: Subscribers;
}

/** By what `--list` and `--by` say. Exit 3 when there is no such list. */
export async function inList(
	cx: CommandContext,
	{ list, by }: { list: string; by?: By | undefined },
): Promise<InList> {
	const api = await cx.api();
	const found = await resolveList(api, list, { by, signal: cx.signal });
	return { list: found, subscribers: api.subscribers(found.id) };
}

/** By id, or by address as the service compares addresses. Exit 3 when there is none. */
export async function resolveSubscriber(
	subscribers: Subscribers,
	text: string,
	list: List,
	signal: AbortSignal,
): Promise<Subscriber> {
	const found = await findSubscriber(subscribers, text, signal);
	if (found === null)
		throw missing(
			'subscriber',
			`${text} of list ${list.id} "${list.name}"`,
			`mailctl subscribers find ${shellWord(text)}`,
		);
	return found;
}

export async function findSubscriber(
	subscribers: Subscribers,
	text: string,
	signal: AbortSignal,
): Promise<Subscriber | null> {
	if (isRecordId(text)) return orNull(subscribers.get(Number(text), { signal }));
	const key = emailKey(text);
	// A deployment may ignore the filter: what it answers is compared once more.
	for await (const one of walk(subscribers, { email__exact: text }, { signal })) {
		if (emailKey(one.email) === key) return one;
	}
	return null;
}
