import type { Api } from '../../api/api.js';
import { campaignState } from '../../api/campaigns.js';
import { need } from '../../api/capabilities.js';
import { withoutSecrets } from '../../api/quote.js';
import type { List, Subscriber, SubscriberFilter } from '../../api/records.js';
import { profileKeys, readConfig } from '../config/config.js';
import { builtIn } from '../config/target.js';
import type { RecordKind } from '../frame/command.js';
import { type Hint, mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import type { Choice, Source } from '../frame/prompts.js';
import { counted } from '../render/units.js';
import { walk } from './listing.js';
import { isRecordId, resolveList } from './resolve.js';

/** More records than a person scrolls through; what is typed then counts as it is. */
const mostRead = 1_000;

const mostMessages = 100;

/** What stands beside the names in `name` (a count, a state, a meaning) is shown only. */
export interface Named extends Choice<string> {
	/** Those that are searched: of equal matches that of the first counts more. Of one question all have as many. */
	names: readonly string[];
	/** Found by the whole of it only. */
	id?: string;
}

interface Records {
	choices: AsyncIterable<Named> | Iterable<Named>;
	hint: Hint;
}

/**
 * `known`: options of the command; with `active`, a list without active subscribers cannot be chosen. Throws `UsageError`
 * where there is nothing to choose from.
 */
export async function choicesOf(
	cx: CommandContext,
	of: RecordKind,
	known: Readonly<Record<string, unknown>>,
	wanted: 'known' | 'new' = 'known',
): Promise<Source<string>> {
	if (of === 'subscriber') return subscribersOf(cx, known);
	const { choices, hint } = await recordsOf(cx, of, known);
	const all: Named[] = [];
	for await (const choice of choices) if (all.push(choice) >= mostRead) break;
	const mayBeNew = wanted === 'new' && !cx.dryRun;
	if (all.length === 0 && !mayBeNew) throw new UsageError(`there is no ${of} to choose`, { hint });
	if (all.length === 0) await cx.note(`There is no ${of} yet: type a name for one.`);
	return async (typed) => {
		const found = matching(all, typed);
		if (!mayBeNew || isRecordId(typed.trim()))
			return [...found, ...(all.length < mostRead ? [] : asTyped(typed))];
		const added = asTyped(typed, `a new ${of}`);
		return beginsAs(found[0], typed) ? [...found, ...added] : [...added, ...found];
	};
}

/** The exact name before those that begin with what is typed, and these before those that have it inside. */
export function matching<T extends Named>(all: readonly T[], typed: string): readonly T[] {
	if (typed.trim() === '') return all;
	return all
		.map((choice) => ({ choice, rank: rankOf(choice, typed.trim()) }))
		.filter(({ rank }) => rank !== -1)
		.sort((one, other) => one.rank - other.rank)
		.map(({ choice }) => choice);
}

/** The less, the better; -1: no match. */
function rankOf({ name, names, id }: Named, typed: string): number {
	const part = folded(typed);
	return [
		...names.map((one) => one === typed),
		name === typed,
		...names.map((one) => folded(one) === part),
		id?.toLowerCase() === part,
		...names.map((one) => folded(one).startsWith(part)),
		...names.map((one) => folded(one).includes(part)),
	].indexOf(true);
}

function beginsAs(choice: Named | undefined, typed: string): boolean {
	if (choice === undefined) return false;
	return [choice.name, ...choice.names].some((one) => folded(one).startsWith(folded(typed)));
}

function folded(text: string): string {
	return text.trim().toLowerCase();
}

function asTyped(typed: string, what = 'as typed'): Choice<string>[] {
	const behind = ` (${what})`;
	const value = (typed.endsWith(behind) ? typed.slice(0, -behind.length) : typed).trim();
	return value === '' ? [] : [{ name: `${value}${behind}`, value }];
}

async function recordsOf(
	cx: CommandContext,
	of: Exclude<RecordKind, 'subscriber'>,
	known: Readonly<Record<string, unknown>>,
): Promise<Records> {
	const { signal } = cx;
	switch (of) {
		case 'list':
			return {
				choices: choosing((await cx.api()).lists, signal, (list) => ({
					...(known['active'] === true ? asRecipients(list) : withSize(list)),
					value: known['by'] === 'name' ? list.name : String(list.id),
					names: [list.name],
					id: String(list.id),
				})),
				hint: mailctl('lists', 'create'),
			};
		case 'field':
			return {
				choices: choosing((await cx.api()).fields, signal, ({ id, variable, name }) => ({
					name: name === variable ? variable : `${variable} (${name})`,
					value: variable,
					names: [variable, name],
					id: String(id),
				})),
				hint: mailctl('fields', 'create'),
			};
		case 'webhook':
			return {
				choices: choosing((await cx.api()).webhooks, signal, ({ id, type, url }) => ({
					name: `${id} ${type} ${withoutSecrets(url)}`,
					value: String(id),
					names: [withoutSecrets(url), type],
					id: String(id),
				})),
				hint: mailctl('webhooks', 'create'),
			};
		case 'template':
			return {
				choices: choosing(await need(await cx.api(), 'templates'), signal, ({ id, name }) => ({
					name,
					value: id,
					names: [name],
					id,
				})),
				hint: mailctl('templates', 'create'),
			};
		case 'sender':
			return {
				choices: choosing((await cx.api()).senders, signal, ({ id, from_email }) => ({
					name: from_email,
					value: from_email,
					names: [from_email],
					id: String(id),
				})),
				hint: mailctl('senders', 'add', 'ADDRESS'),
			};
		case 'campaign':
			return {
				choices: choosing(await need(await cx.api(), 'campaigns'), signal, (campaign) => ({
					name: `${campaign.key} (${campaignState(campaign)})`,
					value: campaign.key,
					names: [campaign.key],
					id: campaign.id,
				})),
				hint: mailctl('send', '--list', 'LIST'),
			};
		case 'message':
			return { choices: messagesOf(await cx.api(), signal), hint: mailctl('messages', 'list') };
		default:
			return ofThisMachine(cx, of, known);
	}
}

function withSize({ name, active_subscribers_count: count }: List): { name: string } {
	return { name: `${name} (${counted(count, 'active subscriber')})` };
}

export function asRecipients(list: List): Omit<Choice<never>, 'value'> {
	return list.active_subscribers_count > 0 ? withSize(list) : { name: list.name, disabled: '(0 active)' };
}

async function ofThisMachine(
	cx: CommandContext,
	of: 'token' | 'profile' | 'stored profile' | 'setting' | 'profile-key' | 'signed domain' | 'DKIM key',
	{ domain }: Readonly<Record<string, unknown>>,
): Promise<Records> {
	const named = (names: readonly string[]) => names.map((name) => ({ name, value: name, names: [name] }));
	switch (of) {
		case 'token': {
			const tokens = await (await cx.local()).tokens.list();
			const alive = tokens.filter(({ date_revoked }) => date_revoked === null);
			return {
				choices: named(alive.map(({ name }) => name)),
				hint: mailctl('engine', 'tokens', 'create', '--name', 'NAME'),
			};
		}
		case 'profile':
		case 'stored profile': {
			const stored = Object.keys(readConfig(cx.paths).profiles).filter((name) => name !== builtIn);
			const names = of === 'profile' ? [...stored, builtIn] : stored;
			return { choices: named(names), hint: mailctl('profile', 'add') };
		}
		case 'setting': {
			const { names } = (await cx.local()).settings;
			const choices = Object.entries(names).map(([name, meaning]) => ({
				name: `${name}: ${meaning}`,
				value: name,
				names: [name],
			}));
			return { choices, hint: mailctl('engine', 'settings', 'get') };
		}
		case 'signed domain': {
			const domains = (await (await cx.local()).dkim.list()).map((key) => key.domain);
			return { choices: named([...new Set(domains)]), hint: mailctl('engine', 'dkim', 'add') };
		}
		case 'DKIM key': {
			const keys = (await (await cx.local()).dkim.list()).filter((key) => key.domain === domain);
			return {
				choices: named(keys.map(({ selector }) => selector)),
				hint: mailctl('engine', 'dkim', 'list'),
			};
		}
		case 'profile-key':
			return { choices: named(['profile', ...Object.keys(profileKeys)]), hint: mailctl('config', 'list') };
	}
}

async function* choosing<T>(
	collection: Parameters<typeof walk<object, T>>[0],
	signal: AbortSignal,
	choice: (record: T) => Named,
): AsyncGenerator<Named> {
	for await (const record of walk(collection, {}, { signal, limit: mostRead })) yield choice(record);
}

async function* messagesOf(api: Api, signal: AbortSignal): AsyncGenerator<Named> {
	const messages = await need(api, 'messages');
	for await (const { id, to, subject, state } of walk(messages, {}, { signal, limit: mostMessages }))
		yield { name: `${to}: ${subject} (${state})`, value: id, names: [to, subject], id };
}

/** The service searches the list: it may be of any size. A deployment that ignores the filter is searched in its first page. */
async function subscribersOf(
	cx: CommandContext,
	known: Readonly<Record<string, unknown>>,
): Promise<Source<string>> {
	const { signal } = cx;
	const api = await cx.api();
	const by = known['by'] === 'id' || known['by'] === 'name' ? known['by'] : undefined;
	const list = await resolveList(api, String(known['list']), { by, signal });
	const subscribers = api.subscribers(list.id);
	/** Tab completes to the shown text, which the service does not know. */
	const emails = new Map<string, string>();
	return async (typed) => {
		const part = emails.get(typed.trim()) ?? typed.trim();
		const page = async (filter: SubscriberFilter) =>
			(await subscribers.page({ ...filter, page_size: mostMessages }, { signal })).results;
		const some = await page(part === '' ? {} : { email__icontains: part });
		// Many others may have the address inside theirs.
		const exact = some.length < mostMessages || part === '' ? [] : await page({ email__exact: part });
		const read = new Map([...exact, ...some].map((subscriber) => [subscriber.id, subscriber]));
		const found = matching([...read.values()].map(named), part);
		for (const { name, names } of found) emails.set(name, names[0] ?? name);
		return found.length > 0 ? found : asTyped(part);
	};
}

function named({ id, email, name }: Subscriber): Named {
	return {
		name: name === '' ? email : `${email} (${name})`,
		value: String(id),
		names: [email, name],
		id: String(id),
	};
}
