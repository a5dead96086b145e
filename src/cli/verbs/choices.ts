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
import { type Collection, walk } from './listing.js';
import { resolveList } from './resolve.js';

const mostRead = 1_000;

const mostMessages = 100;

export interface Named extends Choice<string> {
	/** The texts that are compared with the user's input. */
	names: readonly string[];
	id?: string;
}

type Known = Readonly<Record<string, unknown>>;

interface Records {
	choices: AsyncIterable<Named> | Iterable<Named>;
	hint: Hint;
}

/**
 * `known` has values that narrow the choice, such as the `list` of a subscriber. With `known.active`, the user cannot
 * choose a list without active subscribers. Throws `UsageError` if there is nothing to choose.
 */
export async function choicesOf(cx: CommandContext, of: RecordKind, known: Known): Promise<Source<string>> {
	if (of === 'subscriber') return subscribersOf(cx, known);
	const { choices, hint } = await reads[of](cx, known);
	const all: Named[] = [];
	for await (const choice of choices) if (all.push(choice) >= mostRead) break;
	if (all.length === 0) throw new UsageError(`no ${of} to choose from`, { hint });
	return async (typed) => [...matching(all, typed), ...(all.length < mostRead ? [] : asTyped(typed))];
}

export function matching<T extends Named>(all: readonly T[], typed: string): readonly T[] {
	const part = folded(typed);
	if (part === '') return all;
	const rankOf = ({ name, names, id }: Named) =>
		[
			[name, ...names].includes(typed.trim()),
			names.some((one) => folded(one) === part) || id?.toLowerCase() === part,
			names.some((one) => folded(one).startsWith(part)),
			names.some((one) => folded(one).includes(part)),
		].indexOf(true);
	const ranked = all.map((choice) => ({ choice, rank: rankOf(choice) })).filter(({ rank }) => rank !== -1);
	return ranked.sort((one, other) => one.rank - other.rank).map(({ choice }) => choice);
}

function folded(text: string): string {
	return text.trim().toLowerCase();
}

function asTyped(typed: string): Choice<string>[] {
	const behind = ' (as typed)';
	const value = (typed.endsWith(behind) ? typed.slice(0, -behind.length) : typed).trim();
	return value === '' ? [] : [{ name: `${value}${behind}`, value }];
}

type Read = (cx: CommandContext, known: Known) => Promise<Records>;

function records<T>(
	of: (api: Api) => Collection<object, T> | Promise<Collection<object, T>>,
	choice: (record: T, known: Known) => Named,
	hint: readonly string[],
	limit = mostRead,
): Read {
	return async (cx, known) => {
		const all = walk(await of(await cx.api()), {}, { signal: cx.signal, limit });
		async function* choices() {
			for await (const record of all) yield choice(record, known);
		}
		return { choices: choices(), hint: mailctl(...hint) };
	};
}

/** Reads names that this machine stores. */
function names(
	of: (cx: CommandContext, known: Known) => readonly string[] | Promise<readonly string[]>,
	...hint: readonly string[]
): Read {
	return async (cx, known) => ({
		choices: (await of(cx, known)).map((name) => named(name, name, [name])),
		hint: mailctl(...hint),
	});
}

function named(value: string, name: string, names: readonly string[], id?: string | number): Named {
	return { name, value, names, ...(id !== undefined && { id: String(id) }) };
}

function storedProfiles({ paths }: CommandContext): string[] {
	return Object.keys(readConfig(paths).profiles).filter((name) => name !== builtIn);
}

const reads: Readonly<Record<Exclude<RecordKind, 'subscriber'>, Read>> = {
	list: records(
		({ lists }) => lists,
		(list, { active, by }) => ({
			...named(by === 'name' ? list.name : String(list.id), withSize(list), [list.name], list.id),
			...(active === true &&
				list.active_subscribers_count === 0 && { name: list.name, disabled: '(0 active)' }),
		}),
		['lists', 'create'],
	),
	field: records(
		({ fields }) => fields,
		({ id, variable, name }) =>
			named(variable, name === variable ? variable : `${variable} (${name})`, [variable, name], id),
		['fields', 'create'],
	),
	webhook: records(
		({ webhooks }) => webhooks,
		({ id, type, url }) => {
			const shown = withoutSecrets(url);
			return named(String(id), `${id} ${type} ${shown}`, [shown, type], id);
		},
		['webhooks', 'create'],
	),
	template: records(
		(api) => need(api, 'templates'),
		({ id, name }) => named(id, name, [name], id),
		['templates', 'create'],
	),
	sender: records(
		({ senders }) => senders,
		({ id, from_email }) => named(from_email, from_email, [from_email], id),
		['senders', 'add', 'ADDRESS'],
	),
	campaign: records(
		(api) => need(api, 'campaigns'),
		(one) => named(one.key, `${one.key} (${campaignState(one)})`, [one.key], one.id),
		['send', '--list', 'LIST'],
	),
	message: records(
		(api) => need(api, 'messages'),
		({ id, to, subject, state }) => named(id, `${to}: ${subject} (${state})`, [to, subject], id),
		['messages', 'list'],
		mostMessages,
	),
	token: names(
		async (cx) => {
			const tokens = await (await cx.local()).tokens.list();
			return tokens.filter((one) => one.date_revoked === null).map(({ name }) => name);
		},
		...['engine', 'tokens', 'create', '--name', 'NAME'],
	),
	profile: names((cx) => [...storedProfiles(cx), builtIn], 'profile', 'add'),
	'stored profile': names(storedProfiles, 'profile', 'add'),
	setting: async (cx) => {
		const all = Object.entries((await cx.local()).settings.names);
		const choices = all.map(([name, meaning]) => named(name, `${name}: ${meaning}`, [name]));
		return { choices, hint: mailctl('engine', 'settings', 'get') };
	},
	'signed domain': names(
		async (cx) => [...new Set((await (await cx.local()).dkim.list()).map(({ domain }) => domain))],
		...['engine', 'dkim', 'add'],
	),
	'DKIM key': names(
		async (cx, { domain }) => {
			const keys = await (await cx.local()).dkim.list();
			return keys.filter((key) => key.domain === domain).map(({ selector }) => selector);
		},
		...['engine', 'dkim', 'list'],
	),
	'profile-key': names(() => ['profile', ...Object.keys(profileKeys)], 'config', 'list'),
};

function withSize({ name, active_subscribers_count: count }: List): string {
	return `${name} (${counted(count, 'active subscriber')})`;
}

/** Lets the service search, because the list may be large. If the service ignores the filter, searches one page. */
async function subscribersOf(cx: CommandContext, known: Known): Promise<Source<string>> {
	const { signal } = cx;
	const api = await cx.api();
	const by = known['by'] === 'id' || known['by'] === 'name' ? known['by'] : undefined;
	const list = await resolveList(api, String(known['list']), { by, signal });
	const subscribers = api.subscribers(list.id);
	/** Maps displayed texts to addresses. Tab completes the input to a displayed text, which the service cannot find. */
	const emails = new Map<string, string>();
	return async (typed) => {
		const part = emails.get(typed.trim()) ?? typed.trim();
		const page = async (filter: SubscriberFilter) =>
			(await subscribers.page({ ...filter, page_size: mostMessages }, { signal })).results;
		const some = await page(part === '' ? {} : { email__icontains: part });
		const exact = some.length < mostMessages || part === '' ? [] : await page({ email__exact: part });
		const read = new Map([...exact, ...some].map((subscriber) => [subscriber.id, subscriber]));
		const found = matching([...read.values()].map(personOf), part);
		for (const { name, names } of found) emails.set(name, names[0] ?? name);
		return found.length > 0 ? found : asTyped(part);
	};
}

function personOf({ id, email, name }: Subscriber): Named {
	return named(String(id), name === '' ? email : `${email} (${name})`, [email, name], id);
}
