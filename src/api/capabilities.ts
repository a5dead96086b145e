import type { Api, Call, Crud, PageRequest } from './api.js';
import type { Attachments } from './attachments.js';
import type { Audiences, Campaigns } from './campaigns.js';
import type { Deliveries } from './deliveries.js';
import { MissingExtension } from './errors.js';
import type { Exports, Tuples } from './exports.js';
import type { FieldsPlus, ListsPlus, TemplateInput } from './inputs.js';
import type { Erasures, People } from './people.js';
import {
	type DeletedMessages,
	type KeySlice,
	Message,
	type MessageDetail,
	type MessageState,
	type Page,
	type SendingProgress,
	type Template,
	type Uuid,
} from './records.js';
import type { ReportsPlus } from './reports.js';
import type { CheckedBatch } from './row-texts.js';
import * as t from './schema/record.js';
import type { Infer } from './schema.js';
import type { SubscribersPlus } from './subscribers.js';
import type { Suppressions } from './suppressions.js';

export interface Capabilities {
	readonly service: 'mailctl' | 'unknown';
	/** If false, the client never retries a `send` that got no answer. */
	readonly idempotentSend: boolean;
	readonly ext: Readonly<Partial<Extensions>>;
}

export interface Extensions {
	lists: ListsPlus;
	imports: Imports;
	campaigns: Campaigns;
	messages: Messages;
	templates: Templates;
	reports: ReportsPlus;
	subscribers: SubscribersPlus;
	fields: FieldsPlus;
	erasures: Erasures;
	exports: Exports;
	tuples: Tuples;
	deliveries: Deliveries;
	suppressions: Suppressions;
	people: People;
	audiences: Audiences;
	attachments: Attachments;
}

/** Throws `MissingExtension` (exit code 2) before the command writes. `wanted` names what needs the extension. */
export async function need<K extends keyof Extensions>(
	api: Api,
	name: K,
	wanted: string | null = null,
): Promise<Extensions[K]> {
	const extension = (await api.capabilities()).ext[name];
	if (extension === undefined) throw new MissingExtension(name, wanted);
	return extension;
}

export type Templates = Crud<Template, TemplateInput, object, Uuid>;

export interface MessageFilter {
	status?: MessageState;
	to?: string;
	campaign_unique_id?: Uuid;
	tag?: string;
	since?: string;
	ordering?: 'date_created' | '-date_created';
}

export type MessageScope = { submission: Uuid } | { campaign: Uuid };

export const MessageSlice = t.named('MessageSlice', t.sliceOf(Message, t.text));

export const RawMessage = t.component('RawMessage', {
	id: t.needed(t.uuid),
	raw_base64: t.needed(t.described(t.text, { contentEncoding: 'base64' })),
});

export interface Messages {
	page(
		request: MessageFilter & PageRequest,
		call?: Call,
	): Promise<Page<Message> & { deleted?: DeletedMessages }>;
	/** Reads by key, so the last slice costs as much as the first. Not a snapshot. At most 1,000 per slice. */
	slice(request: MessageFilter & { cursor: string; limit: number }, call?: Call): Promise<KeySlice<Message>>;
	get(id: Uuid, call?: Call): Promise<MessageDetail>;
	raw(id: Uuid, call?: Call): Promise<Infer<typeof RawMessage>>;
	/** Throws `invalid` (field `state`) if the message is being sent, is final, or may have arrived. */
	cancel(id: Uuid, call?: Call): Promise<MessageDetail>;
	/** Makes a deferred or uncertain message due now. The recipient may get an uncertain message twice. */
	retry(id: Uuid, call?: Call): Promise<MessageDetail>;
	progress(scope: MessageScope, call?: Call): Promise<SendingProgress>;
}

export const ImportCounts = t.component('ImportCounts', {
	created: t.needed(t.count),
	updated: t.needed(t.count),
	unchanged: t.needed(t.count),
	duplicate: t.needed(t.count),
	rejected: t.needed(t.count),
	other_reasons: t.optional(t.count),
});
export type ImportCounts = Infer<typeof ImportCounts>;

export const Session = t.component('Session', {
	id: t.needed(t.uuid),
	position: t.needed(t.count),
	counts: t.optional(t.needed(ImportCounts)),
});
export type Session = Infer<typeof Session>;

export const Reject = t.component('Reject', {
	row: t.needed(t.count),
	code: t.needed(t.text),
	error: t.needed(t.text),
});
export type Reject = Infer<typeof Reject>;

export interface Ack<Counts> {
	position: number;
	counts: Counts;
	rejects: Reject[];
}

export const ImportAck = t.component('ImportAck', {
	position: t.needed(t.count),
	counts: t.needed(ImportCounts),
	rejects: t.needed(t.listOf(Reject)),
});

export interface ImportSpec {
	list_id: number;
	on_conflict: 'update' | 'skip' | 'error';
	reactivate: boolean;
}

/** At most 4 MiB. A `null` cell keeps the stored value. If no answer comes, the client sends the batch again. */
export interface ImportBatch {
	first: number;
	columns: readonly string[];
	cells: readonly (string | null)[];
}

export interface Imports {
	/** `key` is a hash of list, source, mapping and options. A known key continues the earlier import where it stopped. */
	open(key: string, spec: ImportSpec, call?: Call): Promise<Session>;
	/** Atomic. Returns the stored ack if the batch was put before (same `first`). Throws `conflict` after a gap. */
	put(id: string, batch: ImportBatch, call?: Call): Promise<Ack<ImportCounts>>;
	/** Puts checked rows. The caller may put more batches before the ack; if this one fails, they fail too. */
	putChecked?(id: string, batch: CheckedBatch): Promise<Ack<ImportCounts>>;
	finish(id: string, call?: Call): Promise<ImportCounts>;
}
