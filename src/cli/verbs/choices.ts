import { campaignState } from '../../api/campaigns.js';
import { need } from '../../api/capabilities.js';
import { withoutSecrets } from '../../api/quote.js';
import type {
	Field,
	List,
	Message,
	Sender,
	Subscriber,
	SubscriberFilter,
	Template,
	Webhook,
} from '../../api/records.js';
import { profileKeys, readConfig } from '../config/config.js';
import { builtIn } from '../config/target.js';
import type { RecordKind } from '../frame/command.js';
import { type Hint, mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import type { Choice, Source } from '../frame/prompts.js';
import { counted } from '../render/units.js';
import { walk } from './listing.js';
import { resolveList } from './resolve.js';

const mostRead = 1_000;

const mostMessages = 100;

export interface Named extends Choice<string> {
	/** The names to search. Among equal matches, those of the first name come first. */
	names: readonly string[];
	id?: string;
}

interface Records {
	choices: AsyncIterable<Named> | Iterable<Named>;
	hint: Hint;
}

/**
 * `known` has the command's options. With `active`, disables lists without active subscribers. Throws `UsageError` if
 * there is nothing to choose.
 */
export async function choicesOf(
	cx: CommandContext,
	of: RecordKind,
	known: Readonly<Record<string, unknown>>,
): Promise<Source<string>> {
	if (of === 'subscriber') return subscribersOf(cx, known);
	const { choices, hint } = await recordsOf(cx, of, known);
	const all: Named[] = [];
	for await (const choice of choices) if (all.push(choice) >= mostRead) break;
	if (all.length === 0) throw new UsageError(`no ${of} to choose`, { hint });
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

async function recordsOf(
	cx: CommandContext,
	of: Exclude<RecordKind, 'subscriber'>,
	known: Readonly<Record<string, unknown>>,
): Promise<Records> {
	const { signal } = cx;
	const from = <T>(
		collection: Parameters<typeof walk<object, T>>[0],
		choice: (record: T) => Named,
		...hint: readonly string[]
	): Records => ({
		choices: chosenFrom(walk(collection, {}, { signal, limit: mostRead }), choice),
		hint: mailctl(...hint),
	});
	const named = (names: readonly string[], ...hint: readonly string[]): Records => ({
		choices: names.map((name) => ({ name, value: name, names: [name] })),
		hint: mailctl(...hint),
	});
	const ofMachine = () => cx.local();
	switch (of) {
		case 'list': {
			const choice = (list: List): Named => ({
				...(known['active'] === true ? asRecipients(list) : withSize(list)),
				value: known['by'] === 'name' ? list.name : String(list.id),
				names: [list.name],
				id: String(list.id),
			});
			return from((await cx.api()).lists, choice, 'lists', 'create');
		}
		case 'field': {
			const choice = ({ id, variable, name }: Field): Named => ({
				name: name === variable ? variable : `${variable} (${name})`,
				...{ value: variable, names: [variable, name], id: String(id) },
			});
			return from((await cx.api()).fields, choice, 'fields', 'create');
		}
		case 'webhook': {
			const choice = ({ id, type, url }: Webhook): Named => ({
				name: `${id} ${type} ${withoutSecrets(url)}`,
				...{ value: String(id), names: [withoutSecrets(url), type], id: String(id) },
			});
			return from((await cx.api()).webhooks, choice, 'webhooks', 'create');
		}
		case 'template': {
			const choice = ({ id, name }: Template): Named => ({ name, value: id, names: [name], id });
			return from(await need(await cx.api(), 'templates'), choice, 'templates', 'create');
		}
		case 'sender': {
			const choice = ({ id, from_email: name }: Sender): Named => ({
				...{ name, value: name, names: [name], id: String(id) },
			});
			return from((await cx.api()).senders, choice, 'senders', 'add', 'ADDRESS');
		}
		case 'campaign':
			return from(
				await need(await cx.api(), 'campaigns'),
				(campaign) => ({
					name: `${campaign.key} (${campaignState(campaign)})`,
					...{ value: campaign.key, names: [campaign.key], id: campaign.id },
				}),
				...['send', '--list', 'LIST'],
			);
		case 'message': {
			const choice = ({ id, to, subject, state }: Message): Named => ({
				...{ name: `${to}: ${subject} (${state})`, value: id, names: [to, subject], id },
			});
			const messages = walk(await need(await cx.api(), 'messages'), {}, { signal, limit: mostMessages });
			return { choices: chosenFrom(messages, choice), hint: mailctl('messages', 'list') };
		}
		case 'token': {
			const tokens = (await (await ofMachine()).tokens.list()).filter((one) => one.date_revoked === null);
			const names = tokens.map(({ name }) => name);
			return named(names, 'engine', 'tokens', 'create', '--name', 'NAME');
		}
		case 'profile':
		case 'stored profile': {
			const stored = Object.keys(readConfig(cx.paths).profiles).filter((name) => name !== builtIn);
			return named(of === 'profile' ? [...stored, builtIn] : stored, 'profile', 'add');
		}
		case 'setting': {
			const choices = Object.entries((await ofMachine()).settings.names).map(([value, meaning]) => ({
				...{ name: `${value}: ${meaning}`, value, names: [value] },
			}));
			return { choices, hint: mailctl('engine', 'settings', 'get') };
		}
		case 'signed domain': {
			const domains = (await (await ofMachine()).dkim.list()).map((key) => key.domain);
			return named([...new Set(domains)], 'engine', 'dkim', 'add');
		}
		case 'DKIM key': {
			const keys = (await (await ofMachine()).dkim.list()).filter((key) => key.domain === known['domain']);
			const selectors = keys.map(({ selector }) => selector);
			return named(selectors, 'engine', 'dkim', 'list');
		}
		case 'profile-key':
			return named(['profile', ...Object.keys(profileKeys)], 'config', 'list');
	}
}

function withSize({ name, active_subscribers_count: count }: List): { name: string } {
	return { name: `${name} (${counted(count, 'active subscriber')})` };
}

function asRecipients(list: List): Omit<Choice<never>, 'value'> {
	return list.active_subscribers_count > 0 ? withSize(list) : { name: list.name, disabled: '(0 active)' };
}

async function* chosenFrom<T>(
	records: AsyncIterable<T>,
	choice: (record: T) => Named,
): AsyncGenerator<Named> {
	for await (const record of records) yield choice(record);
}

/** Lets the service search, because the list may be large. If a service ignores the filter, searches its first page. */
async function subscribersOf(
	cx: CommandContext,
	known: Readonly<Record<string, unknown>>,
): Promise<Source<string>> {
	const { signal } = cx;
	const api = await cx.api();
	const by = known['by'] === 'id' || known['by'] === 'name' ? known['by'] : undefined;
	const list = await resolveList(api, String(known['list']), { by, signal });
	const subscribers = api.subscribers(list.id);
	/** Maps shown texts to addresses, because Tab completes to the shown text, which the service does not know. */
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
	const shown = name === '' ? email : `${email} (${name})`;
	return { name: shown, value: String(id), names: [email, name], id: String(id) };
}
