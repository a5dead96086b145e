import type { SpecIdentity } from '../../../api/campaign-identity.js';
import type { AcceptCounts, AnyCampaignSpec, CampaignStatus } from '../../../api/campaigns.js';
import type { Ack, ImportBatch, ImportCounts, Reject } from '../../../api/capabilities.js';
import type { Micros } from '../../../api/datetime.js';
import type { Uuid } from '../../../api/records.js';
import type { CheckedBatch } from '../../../api/row-texts.js';
import type { Courier } from '../../../engine/rules/campaign-rows.js';
import type { CampaignCanceled } from '../../campaigns.js';
import { parseStored } from '../../errors.js';
import type { ImportAck } from '../../imports.js';
import type { Command } from '../../operations.js';
import type { Leased } from '../../queue.js';
import type { Seen } from '../../store.js';
import { type Conditions, conditionsOf } from '../sql.js';

export type CancelCalls = Command<'cancelCampaign'> & { after: number; limit: number };

export type CallsCanceled =
	| { kind: 'canceled'; next: number | null }
	| Exclude<CampaignCanceled, { kind: 'canceled' }>;

export interface StagedSlice {
	position: number;
	counts: AcceptCounts;
	rejects: Reject[];
	isDone: boolean;
}

export interface ImportSlice {
	batch: ImportBatch | CheckedBatch;
	from: number;
	limit: number;
}

export interface Slices {
	stageSlice(
		command: Seen & { campaign: Uuid; list_id: number; now: Micros; limit: number },
	): Promise<StagedSlice | null>;
	findImportAnswer(command: { session: Uuid; first: number; ahead: number }): Promise<ImportAck | null>;
	putImportSlices(command: {
		session: Uuid;
		slices: readonly ImportSlice[];
		now: Micros;
		expects_new?: boolean | undefined;
	}): Promise<Ack<ImportCounts>[]>;
	dropStaged(command: { campaign: Uuid; limit: number }): Promise<number>;
	cancelCalls(command: CancelCalls): Promise<CallsCanceled>;
	forgetCampaign(command: { campaign: Uuid }): Promise<void>;
	/** For `lease`. `isCut`: the time went into messages that wait for a limit, and others may be due. */
	leaseSlice(command: Command<'lease'>): Promise<{ leased: Leased[]; isCut: boolean }>;
}

export const maxListedRejects = 100;

export interface CampaignRow {
	seq: number;
	id: Uuid;
	key: string;
	spec: string;
	strict_vars: number;
	state: CampaignStatus['state'];
	requests: number;
	courier: Courier;
	is_complete: number;
	released_at: Micros | null;
	staged: number;
	suppressed: number;
	rejected: number;
	left_out: number;
	audience: string | null;
	starts_at: Micros | null;
	opens_at: Micros | null;
	send_window: string | null;
	time_zone: string | null;
	last_leased_at: Micros;
	position: number;
	/** The client that opened it; null: the database's owner. */
	owner: string | null;
	created_at: Micros;
	dropped_at: Micros | null;
	/** Begun in spite of the same mail: 1. */
	is_again: number;
	rate: string | null;
}

export const campaignColumns =
	'seq, id, key, spec, strict_vars, state, requests, courier, is_complete, released_at, staged, suppressed, rejected, left_out, audience, starts_at, opens_at, send_window, time_zone, last_leased_at, position, owner, created_at, dropped_at, is_again, rate';

/** One whose bodies retention has deleted is compared by its identity. */
export type StoredSpec = AnyCampaignSpec & { identity?: SpecIdentity };

export function specOf({ spec }: Pick<CampaignRow, 'spec'>): StoredSpec {
	return parseStored(spec) as StoredSpec;
}

export function isSeen({ owner }: Pick<CampaignRow, 'owner'>, { only_of }: Seen): boolean {
	return only_of === undefined || owner === only_of;
}

export function seenRows(column: string, { only_of }: Seen): Conditions {
	return conditionsOf([[`${column} = ?`, only_of]]);
}

/**
 * Whether a released campaign `g` is not finished. A message waits (messages_due), or an API may have received one and a
 * person has to decide (messages_over_of_lane). A campaign may stay open for a moment behind its last outcome.
 */
export const isSending = `(g.state = 'released' AND (
	(g.has_open_work = 1 AND EXISTS (SELECT 1 FROM messages WHERE lane = g.seq AND wake_at IS NOT NULL))
	OR (g.courier = 'api' AND EXISTS (
		SELECT 1 FROM messages WHERE lane = g.seq AND state = 'uncertain' AND wake_at IS NULL AND state <> 'sent'
	))
))`;

/** Needs the campaign `g` and the moment: released for later, and nothing of it was leased. */
export const isPlanned = "(g.state = 'released' AND g.last_leased_at = 0 AND g.opens_at > ?)";

export function noCounts(): AcceptCounts {
	return { staged: 0, suppressed: 0, rejected: 0 };
}

export function countsOf({ staged, suppressed, rejected, left_out }: CampaignRow): AcceptCounts {
	return { staged, suppressed, rejected, ...(left_out > 0 && { left_out }) };
}
