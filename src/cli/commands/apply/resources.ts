import type { Api } from '../../../api/api.js';
import { need } from '../../../api/capabilities.js';
import type { Uuid, WebhookType } from '../../../api/records.js';
import { collect, walk } from '../../verbs/listing.js';
import type { Declared, Kind, Value } from './plan.js';

export type Values = Readonly<Record<string, Value>>;

export interface Existing {
	name: string;
	values: Values | null;
	subscribers?: number;
	delete(): Promise<unknown>;
	patch(values: Values): Promise<unknown>;
}

export interface Resource {
	all(): Promise<Existing[]>;
	create(values: Values): Promise<unknown>;
}

/** Throws `MissingExtension`. */
export const resources: Readonly<
	Record<
		Exclude<Kind, 'settings'>,
		(api: Api, signal: AbortSignal, declared: readonly Declared[]) => Promise<Resource>
	>
> = {
	senders: async ({ senders }, signal) => ({
		all: () =>
			existing(walk(senders, {}, { signal }), ({ id, from_email }) => ({
				name: from_email.toLowerCase(),
				values: null,
				delete: () => senders.delete(id, { signal }),
				patch: async () => undefined,
			})),
		create: ({ email }) => senders.create({ from_email: String(email) }, { signal }),
	}),
	fields: async ({ fields }, signal) => ({
		all: () =>
			existing(walk(fields, {}, { signal }), ({ id, variable, name }) => ({
				name: variable,
				values: { variable, name },
				delete: () => fields.delete(id, { signal }),
				patch: (values) => fields.patch(id, texts(values), { signal }),
			})),
		create: ({ variable, name }) =>
			fields.create({ variable: String(variable), name: String(name) }, { signal }),
	}),
	lists: async (api, signal, declared) => {
		const { lists } = api;
		// Each list needs a request, so ask only for lists with a declared public name.
		const named = new Set(declared.filter(({ values }) => 'public_name' in values).map(({ name }) => name));
		const details = named.size === 0 ? null : await need(api, 'lists', 'public_name in the file');
		const put = async (id: number, public_name: Value | undefined) =>
			public_name === undefined
				? undefined
				: details?.patch(id, { public_name: textOrNull(public_name) }, { signal });
		return {
			all: async () => {
				const all: Existing[] = [];
				for (const list of await collect(walk(lists, {}, { signal }))) {
					const { id, name, email_reason } = list;
					const more = named.has(name) ? await details?.get(id, { signal }) : undefined;
					all.push({
						name,
						subscribers: list.overall_subscribers_count,
						values: { name, email_reason, public_name: more?.public_name ?? null },
						delete: () => lists.delete(id, { signal }),
						patch: async ({ public_name, ...values }) => {
							if (Object.keys(values).length > 0) await lists.patch(id, texts(values), { signal });
							return put(id, public_name);
						},
					});
				}
				return all;
			},
			create: async ({ name, email_reason, public_name }) => {
				const input = { name: String(name), email_reason: String(email_reason) };
				const { lists: ours } = (await api.capabilities()).ext;
				// Another process may have added the list since the plan.
				const { is_new, list } = (await ours?.add(input, { signal })) ?? {
					...{ is_new: true, list: await lists.create(input, { signal }) },
				};
				if (!is_new && list.email_reason !== input.email_reason)
					await lists.patch(list.id, { email_reason: input.email_reason }, { signal });
				await put(list.id, public_name ?? undefined);
			},
		};
	},
	templates: async (api, signal) => {
		const templates = await need(api, 'templates', 'templates in the file');
		return {
			all: () =>
				existing(walk(templates, {}, { signal }), ({ id, name, text_body, html_body }) => ({
					name,
					values: { name, text_body, html_body },
					delete: () => templates.delete(id as Uuid, { signal }),
					patch: (values) => templates.patch(id, texts(values), { signal }),
				})),
			create: (values) => templates.create({ name: '', ...texts(values) }, { signal }),
		};
	},
	webhooks: async ({ webhooks }, signal) => ({
		all: () =>
			existing(walk(webhooks, {}, { signal }), ({ id, url, type, is_auth_enabled, login, password }) => ({
				name: `${type} ${url}`,
				values: { url, type, is_auth_enabled, login, password },
				delete: () => webhooks.delete(id, { signal }),
				patch: (values) => webhooks.patch(id, hook(values), { signal }),
			})),
		create: async (values) => {
			const login = values['login'] !== undefined && { is_auth_enabled: true };
			const input = { url: '', type: 'OPENED' as const, ...login, ...hook(values) };
			// Another process may have created it since the plan, and each event would call a second webhook too.
			for await (const { id, url, type } of walk(webhooks, {}, { signal }))
				if (url === input.url && type === input.type) return webhooks.patch(id, input, { signal });
			return webhooks.create(input, { signal });
		},
	}),
};

async function existing<T>(records: AsyncIterable<T>, of: (record: T) => Existing): Promise<Existing[]> {
	return (await collect(records)).map(of);
}

function textOrNull(value: Value): string | null {
	return value === null ? null : String(value);
}

function texts(values: Values): Record<string, string> {
	return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, String(value)]));
}

function hook({ is_auth_enabled, type, ...rest }: Values) {
	return {
		...texts(rest),
		...(typeof type === 'string' && { type: type as WebhookType }),
		...(typeof is_auth_enabled === 'boolean' && { is_auth_enabled }),
	};
}
