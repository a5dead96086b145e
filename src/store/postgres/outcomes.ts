/**
 * What became of a write whose COMMIT got no answer. Its own answer is kept in the same transaction: a process that was
 * not told asks for it, and runs the write again only where there is none.
 */
import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import { type Clock, type Micros, microsPerDay } from '../../api/datetime.js';
import type { Slices } from '../core/campaigns/rows.js';
import type { FieldUses } from '../core/fields.js';

import type { Emptying } from '../core/lists.js';
import type { Sql } from '../core/sql.js';
import type { Queue } from '../queue.js';
import type { Writes } from '../store.js';

/**
 * `again`: a second run does no harm and answers what the first did, or what its caller takes as well: positions of
 * batches, patches, leases. `asks`: it would answer "not found" or "duplicate" because of itself, or count twice.
 */
const repeats: Readonly<Record<keyof (Writes & Queue & Slices & Emptying & FieldUses), 'again' | 'asks'>> = {
	createList: 'asks',
	patchList: 'again',
	patchListDetails: 'again',
	deleteList: 'asks',
	clearList: 'asks',
	createSubscriber: 'asks',
	patchSubscriber: 'again',
	deleteSubscriber: 'asks',
	erasePerson: 'asks',
	liftErasure: 'asks',
	putSuppressions: 'asks',
	removeSuppressions: 'asks',
	createField: 'asks',
	patchField: 'again',
	deleteField: 'asks',
	createWebhook: 'asks',
	patchWebhook: 'again',
	deleteWebhook: 'asks',
	leaseDeliveries: 'again',
	settleDeliveries: 'asks',
	replayDeliveries: 'asks',
	ensureWebhookSecret: 'again',
	rotateWebhookSecret: 'asks',
	createTemplate: 'asks',
	patchTemplate: 'again',
	deleteTemplate: 'asks',
	putAttachment: 'again',
	createSender: 'asks',
	patchSender: 'again',
	deleteSender: 'asks',
	putSettings: 'again',
	ensureKey: 'again',
	rewriteSecrets: 'again',
	createToken: 'asks',
	revokeToken: 'asks',
	addDkimKey: 'asks',
	removeDkimKey: 'asks',
	acceptSubmission: 'asks',
	openCampaign: 'asks',
	addListToCampaign: 'asks',
	addPeopleToCampaign: 'asks',
	retryUncertain: 'asks',
	keepCampaignRate: 'again',
	putCampaignBatch: 'again',
	completeCampaign: 'asks',
	releaseCampaign: 'asks',
	cancelCampaign: 'asks',
	openImport: 'asks',
	putImportBatch: 'again',
	finishImport: 'asks',
	openRowImport: 'asks',
	declareRow: 'asks',
	acknowledgeRows: 'asks',
	dropRowImport: 'asks',
	changeMessage: 'asks',
	recordEvents: 'asks',
	recordReport: 'asks',
	settleRestored: 'asks',
	repairCounts: 'asks',
	// What a lost answer leased returns when its leases end.
	lease: 'again',
	renew: 'again',
	settle: 'asks',
	setCalling: 'again',
	beginComposing: 'again',
	endComposing: 'again',
	pause: 'asks',
	resume: 'asks',
	stageSlice: 'asks',
	findImportAnswer: 'again',
	putImportSlices: 'again',
	dropStaged: 'again',
	cancelCalls: 'again',
	forgetCampaign: 'again',
	leaseSlice: 'again',
	dropSubscribers: 'asks',
	dropFieldUses: 'again',
};

export interface Receipt {
	/** Keeps its answer, in the round trip that ends the transaction. */
	put(sql: Sql, answer: unknown): void;
	/** The answer of an earlier try; null: none was committed. Its own COMMIT waits for the replicas of that try too. */
	find(sql: Sql): Promise<{ answer: unknown } | null>;
	/** The caller knows the answer: a later write deletes it. */
	settle(): void;
}

export interface Outcomes {
	/** Null: the operation may run again. */
	receiptFor(operation: string): Receipt | null;
}

/** For one process. Answers hold addresses and secrets: only the key of this process, which is kept nowhere, opens them. */
export function createOutcomes(clock: Clock): Outcomes {
	const key = randomBytes(32);
	const settled: string[] = [];
	return {
		receiptFor: (operation) => {
			if (Reflect.get(repeats, operation) === 'again') return null;
			const op = randomUUID();
			const deleting: string[] = [];
			return {
				put: (sql, answer) => {
					deleting.push(...settled.splice(0));
					const sealed = seal(key, answer);
					sql.write('INSERT INTO outcomes (op, answer, at) VALUES (?, ?, ?)', op, sealed, clock.now());
					for (const one of deleting) sql.write('DELETE FROM outcomes WHERE op = ?', one);
				},
				find: async (sql) => {
					const row = await sql.get<{ answer: Uint8Array }>(
						'UPDATE outcomes SET at = ? WHERE op = ? RETURNING answer',
						clock.now(),
						op,
					);
					return row === undefined ? null : { answer: unseal(key, row.answer) };
				},
				settle: () => void settled.push(op),
			};
		},
	};
}

const algorithm = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

function seal(key: Buffer, answer: unknown): Buffer {
	const iv = randomBytes(ivBytes);
	const cipher = createCipheriv(algorithm, key, iv);
	const sealed = Buffer.concat([cipher.update(serialize(answer)), cipher.final()]);
	return Buffer.concat([iv, cipher.getAuthTag(), sealed]);
}

function unseal(key: Buffer, bytes: Uint8Array): unknown {
	const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, ivBytes));
	decipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes));
	const opened = Buffer.concat([decipher.update(bytes.subarray(ivBytes + tagBytes)), decipher.final()]);
	return deserialize(opened);
}

export async function dropOutcomes(sql: Sql, { now, limit }: { now: Micros; limit: number }) {
	return await sql.run(
		// outcomes_by_time
		'DELETE FROM outcomes WHERE op IN (SELECT op FROM outcomes WHERE at <= ? ORDER BY at, op LIMIT ?)',
		now - microsPerDay,
		limit,
	);
}
