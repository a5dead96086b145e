/** Copies of a message (cc, bcc): they go to nobody whose address bounced hard or complained. */
import { type EmailKey, parseMailbox } from '../../api/address.js';
import type { Envelope } from '../../api/content.js';
import type { Micros } from '../../api/datetime.js';
import { mayReceive } from '../../engine/rules/subscription.js';
import type { Sql } from './sql.js';
import { findSuppressions } from './suppressions.js';

/** The envelope as it is accepted: without the copies that may not go. */
export function deliverableEnvelope(sql: Sql, envelope: Envelope, now: Micros): Envelope {
	const stopped = new Set(stoppedCopies(sql, envelope, now));
	const isDeliverable = (text: string) => !stopped.has(parseMailbox(text)?.key ?? '');
	return { ...envelope, cc: envelope.cc.filter(isDeliverable), bcc: envelope.bcc.filter(isDeliverable) };
}

/** Addresses of copies that may not go at this moment; nearly always none. */
export function stoppedCopies(sql: Sql, { cc, bcc }: Pick<Envelope, 'cc' | 'bcc'>, now: Micros): EmailKey[] {
	const keys = new Set([...cc, ...bcc].flatMap((text) => parseMailbox(text)?.key ?? []));
	return [...keys].filter((key) => !mayReceive('TRANSACTIONAL', findSuppressions(sql, key, now)));
}
