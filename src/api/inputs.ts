import type { Call } from './api.js';
import type { sendFields } from './messages.js';
import { List, webhookTypes } from './records.js';
import * as f from './schema/fields.js';
import * as t from './schema/record.js';
import { texts } from './schema/texts.js';
import { fieldSet, type Given, type Infer } from './schema.js';
import type { subscriberFields } from './subscribers.js';

export type ListInput = Given<typeof listFields>;
export type FieldInput = Given<typeof fieldFields>;
export type SubscriberInput = Given<typeof subscriberFields>;
export type SendRequest = Given<typeof sendFields>;

/** Service document, "HTTP notifications". Assumption: login and password have at most 255 characters each. */
export const webhookFields = fieldSet({
	url: f.url(),
	type: f.choice(webhookTypes),
	is_auth_enabled: f.withDefault(f.boolean(), () => false),
	login: f.withDefault(f.char({ max: 255, allowBlank: true }), () => ''),
	password: f.withDefault(f.char({ max: 255, allowBlank: true, trim: 'off' }), () => ''),
});
export type WebhookInput = Given<typeof webhookFields>;

/** Octets of UTF-8. The service document gives no limit. */
export const maxBodyBytes = 2 * 1024 * 1024;

const messageBody = f.char({ allowBlank: true, trim: 'off', maxBytes: maxBodyBytes });

export const templateFields = fieldSet({
	name: f.char({ max: 255 }),
	text_body: f.withDefault(messageBody, () => ''),
	html_body: f.withDefault(messageBody, () => ''),
});
export type TemplateInput = Given<typeof templateFields>;

const oneLine: f.TextRule = (value) =>
	/[\x01-\x1f\x7f-\x9f\u2028\u2029]/.test(value) ? { code: 'invalid', message: texts.value } : null;

export const senderFields = fieldSet({
	full_name: f.withDefault(f.char({ max: 255, allowBlank: true, rules: [oneLine] }), () => ''),
	from_email: f.email(),
	reply_to_email: f.withDefault(f.email({ allowBlank: true }), () => ''),
});
export type SenderInput = Given<typeof senderFields>;

export const variablePattern = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

export const builtInVariables: readonly string[] = [
	'email',
	'name',
	'unsubscribe_url',
	'view_url',
	'email_reason',
];

/** An assignment to `__proto__` would change an object's prototype instead of its keys. */
export const reservedNames: ReadonlySet<string> = new Set([...builtInVariables, '__proto__']);

const notReserved: f.TextRule = (value) =>
	reservedNames.has(value) ? { code: 'reserved', message: `"${value}" is a reserved variable name.` } : null;

export const fieldFields = fieldSet({
	variable: f.pattern(/^[A-Za-z_][A-Za-z0-9_]*$/, { max: 64, rules: [notReserved] }),
	name: f.char({ max: 255 }),
});

export interface FieldsPlus {
	countUses(id: number, call?: Call): Promise<number>;
}

/** Assumption: both texts have at most 255 characters each. */
export const listFields = fieldSet({ name: f.char({ max: 255 }), email_reason: f.char({ max: 255 }) });

export const ListDetails = t.component('ListDetails', {
	id: t.needed(t.id),
	public_name: t.needed(t.orNull(t.text)),
});
export type ListDetails = Infer<typeof ListDetails>;

export const listDetailsFields = fieldSet({
	public_name: f.nullable(f.char({ max: 255, allowBlank: true })),
});
export type ListDetailsInput = Infer<typeof listDetailsFields>;

/** `is_new` is false if an earlier call with the same idempotency key created the list. */
export const AddedList = t.component('AddedList', { is_new: t.needed(t.flag), list: t.needed(List) });
export type AddedList = Infer<typeof AddedList>;

export interface ListsPlus {
	/** Atomic. Throws `unprocessable` if another request has used the idempotency key. */
	add(input: ListInput, call?: Call): Promise<AddedList>;
	get(id: number, call?: Call): Promise<ListDetails>;
	patch(id: number, input: Partial<ListDetailsInput>, call?: Call): Promise<ListDetails>;
}
