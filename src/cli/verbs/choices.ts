/** What a person may choose among when a value is missing: the records that are there, by name. */

import type { Api } from '../../api/api.js';
import { campaignState } from '../../api/campaigns.js';
import { need } from '../../api/capabilities.js';
import { withoutSecrets } from '../../api/quote.js';
import type { List } from '../../api/records.js';
import { profileKeys, readConfig } from '../config/config.js';
import { builtIn } from '../config/target.js';
import type { RecordKind } from '../frame/command.js';
import { type Hint, mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import type { Choice, Source } from '../frame/questions.js';
import { counted } from '../render/plurals.js';
import { walk } from './listing.js';
import { isRecordId, resolveList } from './resolve.js';

/** More records than a person scrolls through; what is typed then counts as it is. */
const mostRead = 1_000;

/** The last messages: those a person may mean without knowing an id. */
const mostMessages = 100;

interface Records {
	choices: AsyncIterable<Choice<string>> | Iterable<Choice<string>>;
	/** Where there are none. */
	hint: Hint;
}

/** `known`: options of the command. Throws `UsageError` where there is nothing to choose from. */
export async function choicesOf(
	cx: CommandContext,
	of: RecordKind,
	known: Readonly<Record<string, unknown>>,
	wanted: 'known' | 'new' = 'known',
): Promise<Source<string>> {
	if (of === 'subscriber') return subscribersOf(cx, known);
	const { choices, hint } = await recordsOf(cx, of, known);
	const all: Choice<string>[] = [];
	for await (const choice of choices) if (all.push(choice) >= mostRead) break;
	const mayBeNew = wanted === 'new' && !cx.dryRun;
	if (all.length === 0 && !mayBeNew) throw new UsageError(`there is no ${of} to choose`, { hint });
	if (all.length === 0) await cx.note(`There is no ${of} yet: type a name for one.`);
	return async (typed) => [
		...matching(all, typed),
		...(mayBeNew && !isRecordId(typed.trim())
			? asTyped(typed, `a new ${of}`)
			: all.length < mostRead
				? []
				: asTyped(typed)),
	];
}

function matching(all: readonly Choice<string>[], typed: string): readonly Choice<string>[] {
	const part = typed.trim().toLowerCase();
	return all.filter(({ name, value }) => name.toLowerCase().includes(part) || value === part);
}

function asTyped(typed: string, what = 'as typed'): Choice<string>[] {
	return typed.trim() === '' ? [] : [{ name: `${typed.trim()} (${what})`, value: typed.trim() }];
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
					name: withSize(list),
					value: known['by'] === 'name' ? list.name : String(list.id),
				})),
				hint: mailctl('lists', 'create'),
			};
		case 'field':
			return {
				choices: choosing((await cx.api()).fields, signal, ({ variable, name }) => ({
					name: name === variable ? variable : `${variable} (${name})`,
					value: variable,
				})),
				hint: mailctl('fields', 'create'),
			};
		case 'webhook':
			return {
				choices: choosing((await cx.api()).webhooks, signal, ({ id, type, url }) => ({
					name: `${id} ${type} ${withoutSecrets(url)}`,
					value: String(id),
				})),
				hint: mailctl('webhooks', 'create'),
			};
		case 'template':
			return {
				choices: choosing(await need(await cx.api(), 'templates'), signal, ({ id, name }) => ({
					name,
					value: id,
				})),
				hint: mailctl('templates', 'create'),
			};
		case 'sender':
			return {
				choices: choosing(await need(await cx.api(), 'senders'), signal, ({ email }) => ({
					name: email,
					value: email,
				})),
				hint: mailctl('senders', 'add', 'ADDRESS'),
			};
		case 'campaign':
			return {
				choices: choosing(await need(await cx.api(), 'campaigns'), signal, (campaign) => ({
					name: `${campaign.key} (${campaignState(campaign)})`,
					value: campaign.key,
				})),
				hint: mailctl('send', '--list', 'LIST'),
			};
		case 'message':
			return { choices: messagesOf(await cx.api(), signal), hint: mailctl('messages', 'list') };
		default:
			return ofThisMachine(cx, of, known);
	}
}

/** `Readers (12 active subscribers)`. */
export function withSize({ name, active_subscribers_count }: List): string {
	return `${name} (${counted(active_subscribers_count, 'active subscriber')})`;
}

async function ofThisMachine(
	cx: CommandContext,
	of: 'token' | 'profile' | 'stored profile' | 'setting' | 'profile-key' | 'signed domain' | 'DKIM key',
	{ domain }: Readonly<Record<string, unknown>>,
): Promise<Records> {
	const named = (names: readonly string[]) => names.map((name) => ({ name, value: name }));
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
	choice: (record: T) => Choice<string>,
): AsyncGenerator<Choice<string>> {
	for await (const record of walk(collection, {}, { signal, limit: mostRead })) yield choice(record);
}

async function* messagesOf(api: Api, signal: AbortSignal): AsyncGenerator<Choice<string>> {
	const messages = await need(api, 'messages');
	for await (const { id, to, subject, state } of walk(messages, {}, { signal, limit: mostMessages }))
		yield { name: `${to}: ${subject} (${state})`, value: id };
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
	return async (typed) => {
		const part = typed.trim();
		const filter = part === '' ? {} : { email__icontains: part };
		const { results } = await subscribers.page({ ...filter, page_size: mostMessages }, { signal });
		const all = results.map(({ id, email, name }) => ({
			name: name === '' ? email : `${email} (${name})`,
			value: String(id),
		}));
		const found = matching(all, part);
		return found.length > 0 ? found : asTyped(part);
	};
}
