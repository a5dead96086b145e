/** The message of a send before it is sent: its content, its variables and their values, and warnings. */

import { parseAddress, parseMailbox } from '../../../api/address.js';
import type { CampaignSpec } from '../../../api/campaigns.js';
import { isForbidden } from '../../../api/errors.js';
import { builtInVariables, type SendRequest } from '../../../api/inputs.js';
import type { Content } from '../../../api/messages.js';
import type { Subscriber, Template } from '../../../api/records.js';
import { suggest } from '../../../api/suggest.js';
import { hasDefault, usedVariables, variableNames } from '../../../api/variables.js';
import type { ContentFinding } from '../../../content/lint.js';
import { mailctl } from '../../frame/command-line.js';
import type { ComposedMessage, FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { readableFields } from '../../verbs/field-names.js';
import { findInAllLists } from '../subscribers/lookup.js';
import type { SendOptions } from './options.js';

/** `values`: the variables of the recipient. The context of the request overrides them. */
export interface Addressee {
	to: string;
	values: Readonly<Record<string, string>>;
}

export interface First {
	draft: Draft;
	addressee: Addressee;
	/** The request as `--batch` gives it. */
	request?: SendRequest;
}

export class Draft {
	readonly request: Omit<SendRequest, 'to'>;
	readonly template: Template | null;
	readonly files: readonly FileToSend[];
	readonly content: Content;
	/** The variables of the content, without their defaults. */
	readonly names: readonly string[];
	/** True if the service does not show the content of the template. */
	readonly isOpaque: boolean;
	readonly #cx: CommandContext;
	readonly #context: Readonly<Record<string, string>>;

	constructor(
		cx: CommandContext,
		{ request, template, files }: Pick<Draft, 'request' | 'template' | 'files'>,
	) {
		const { attachments = [] } = request;
		this.request = request;
		this.template = template;
		this.files = files;
		this.content = {
			subject: template?.name ?? request.subject ?? '',
			text: (template === null ? request.text_body : template.text_body) || null,
			html: (template === null ? request.html_body : template.html_body) || null,
			disable_inline: request.disable_inline ?? false,
			...(attachments.length > 0 && { attachments }),
		};
		this.names = variableNames(usedVariables(this.content));
		this.isOpaque = request.template_unique_id !== undefined && template === null;
		this.#cx = cx;
		this.#context = request.context ?? {};
	}

	get spec(): CampaignSpec {
		const { cc, bcc, from, type = 'TRANSACTIONAL', ...rest } = this.request;
		return { ...rest, from: typeof from === 'string' ? from : (from[0] ?? ''), type };
	}

	/** Fields may supply the values of the returned variables. */
	open(content: Pick<Content, 'subject' | 'text' | 'html'> = this.content): string[] {
		return usedVariables(content).filter(
			(name) => !hasDefault(name) && !Object.hasOwn(this.#context, name) && !builtInVariables.includes(name),
		);
	}

	/**
	 * Throws `UsageError` if a variable has no value for one of the addresses. If the service is mailctl, this method
	 * looks up the subscriber's values; an address in several lists has none. Other services do not show values, so this
	 * method only checks that such a field exists.
	 */
	async assertVariables({ strictVars, bulk, to }: SendOptions): Promise<void> {
		if (!(strictVars ?? bulk)) return;
		if (this.isOpaque) {
			if (strictVars === true) throw new UsageError(unknownVariables);
			return;
		}
		const open = this.open();
		const known = open.length === 0 ? [] : ((await fieldsOf(this.#cx)) ?? []);
		const fields = open.filter((name) => known.includes(name));
		const missing = new Set(open.filter((name) => !known.includes(name)));
		const { ext } = await (await this.#cx.api()).capabilities();
		for (const one of fields.length > 0 && ext.campaigns !== undefined ? to : []) {
			const { values } = await this.addressee(parseMailbox(one)?.address ?? one);
			for (const name of fields) if (!Object.hasOwn(values, name)) missing.add(name);
		}
		if (missing.size === 0) return;
		const names = [...missing].map((name) => `#${name}#`).join(', ');
		throw new UsageError(`no value for ${names}; nothing was sent`, {
			hint: 'give --context NAME=VALUE, write a default (#name|friend#), or add --no-strict-vars',
		});
	}

	async warnOfContent(): Promise<void> {
		if (this.isOpaque || !isNews(this.#cx, 'content')) return;
		const { warnOfFindings } = await import('../../verbs/content.js');
		await warnOfFindings(this.#cx, this.content, { bulk: await this.#wantsLink() });
	}

	async findings(): Promise<ContentFinding[]> {
		if (this.isOpaque) return [];
		const { contentFindings } = await import('../../../content/lint.js');
		return contentFindings(this.content, { bulk: await this.#wantsLink() });
	}

	async #wantsLink(): Promise<boolean> {
		return this.request.type === 'BULK' && !(await isMadeElsewhere(this.#cx));
	}

	/**
	 * Warns of variables without a value. With `strict`, a later check refuses them, and this one warns only if a name
	 * resembles a known variable. `columns`: the variables of each row.
	 */
	async warnOfVariables(strict: boolean, columns: readonly string[] = []): Promise<void> {
		if (this.isOpaque) return;
		const references = usedVariables(this.content);
		const given = [...builtInVariables, ...Object.keys(this.#context), ...columns];
		const open = this.names.filter((name) => !given.includes(name));
		const known = open.length === 0 ? null : await fieldsOf(this.#cx);
		if (known === null) return;
		for (const name of open.filter((one) => !known.includes(one))) {
			const near = suggest(name, [...new Set([...given, ...known])]).map((one) => `#${one}#`);
			const isPlain = references.includes(name) && !strict;
			if ((near.length === 0 && !isPlain) || !isNews(this.#cx, `#${name}#`)) continue;
			const text = isPlain ? `no value for #${name}#` : `#${name}# is not a known variable`;
			await this.#cx.warn(text, ...(near.length === 0 ? [] : [`did you mean ${near.join(' or ')}?`]));
		}
	}

	async compose({ to, values }: Addressee): Promise<ComposedMessage> {
		const { request } = this;
		if (this.isOpaque)
			throw new UsageError('the message cannot be shown: this service does not show its templates');
		const composed = await (await this.#cx.connection()).compose({
			from: this.spec.from,
			to,
			...this.content,
			bulk: request.type === 'BULK',
			reply_to: request.reply_to ?? [],
			cc: request.cc ?? [],
			headers: request.headers ?? {},
			variables: { email: to, ...values, ...this.#context },
			files: this.files,
		});
		for (const warning of composed.warnings) if (isNews(this.#cx, warning)) await this.#cx.warn(warning);
		return composed;
	}

	/** Returns the subscriber's values. Without a list in the request, an address in several lists gets no values. */
	async addressee(text: string): Promise<Addressee> {
		const cx = this.#cx;
		const to = parseAddress(text)?.address ?? text;
		if (await isMadeElsewhere(cx)) return { to, values: {} };
		const unknown = { to, values: { name: '', email_reason: '' } };
		if (this.isOpaque || !this.#usesPerson()) return unknown;
		const { list_id } = this.request;
		try {
			const api = await cx.api();
			const people: Subscriber[] = [];
			for await (const one of findInAllLists(api, to, cx.signal))
				if (list_id === undefined || one.list_id === list_id) people.push(one);
			const [person, another] = people;
			const list = list_id ?? person?.list_id;
			if (list === undefined || another !== undefined) return unknown;
			const { email_reason } = await api.lists.get(list, { signal: cx.signal });
			if (person === undefined) return { to, values: { ...unknown.values, email_reason } };
			return { to, values: asSubscriber(person, email_reason).values };
		} catch (error) {
			if (!isForbidden(error)) throw error;
			await cx.warn('this token cannot read subscribers, so their values are missing here');
			return unknown;
		}
	}

	#usesPerson(): boolean {
		const known = builtInVariables.filter((name) => name !== 'name' && name !== 'email_reason');
		const given = new Set<string>([...known, ...Object.keys(this.#context)]);
		return this.names.some((name) => !given.has(name));
	}
}

export function asSubscriber({ email, name, meta }: Subscriber, email_reason: string): Addressee {
	const fields = Object.entries(meta).filter(([, value]) => value !== null && typeof value !== 'object');
	const values = Object.fromEntries(fields.map(([key, value]) => [key, String(value)]));
	return { to: email, values: { name, email_reason, ...values } };
}

/** True if the service composes messages itself. A message composed here could differ from the sent one. */
export async function isMadeElsewhere(cx: CommandContext): Promise<boolean> {
	return (await (await cx.api()).capabilities()).service !== 'mailctl';
}

export const unknownVariables = '--strict-vars cannot be checked: this service does not show its templates';

/** Null if the token may not read fields. */
export async function fieldsOf(cx: CommandContext): Promise<string[] | null> {
	return (await readableFields(cx))?.map(({ variable }) => variable) ?? null;
}

const saidBy = new WeakMap<CommandContext, Set<string>>();

/** True at the first call with this text in a command, so that each warning appears once. */
export function isNews(cx: CommandContext, text: string): boolean {
	const said = saidBy.get(cx) ?? new Set();
	saidBy.set(cx, said);
	return !said.has(text) && said.add(text) !== undefined;
}

export async function warnOfLinks(cx: CommandContext, isBulk: boolean): Promise<void> {
	const { local } = await cx.connection();
	if (!isBulk || local === null) return;
	const url = (await local.settings.get())['public_url'];
	if ((url !== undefined && /^https:/i.test(url)) || !isNews(cx, 'links')) return;
	await cx.warn(
		url === undefined
			? 'unsubscribe links point to this machine, so nobody else can open them'
			: 'public_url is http, so mail programs offer no one-click unsubscribe',
		mailctl('engine', 'settings', 'set', 'public_url', 'https://HOST'),
	);
}

export async function warnOfMissing(cx: CommandContext, names: readonly string[]): Promise<void> {
	const unnamed = names.map((name) => `#${name}#`).filter((one) => isNews(cx, one));
	if (unnamed.length > 0) await cx.warn(`no value for ${unnamed.join(', ')}`);
}
