/** The mail server for bounces, beside a server of the API. */

import { ingestMail } from '../../delivery/bounces/ingest.js';
import { type BounceListener, listenForBounces } from '../../delivery/bounces/listener.js';
import type { ReturnedReport } from '../../engine/rules/reported-recipients.js';
import { createReportReader } from '../../threads/readers.js';
import type { ServeOptions } from '../frame/connection.js';
import { openVerp } from './database-keys.js';
import type { LocalParts } from './parts.js';
import { keptFor } from './tracking.js';

/** The bounce address and the keys are read again after so long. */
const pathsForMs = 1_000;

/** `null` where none is wanted. Rejects when it cannot listen. */
export async function startBounceSmtp(
	{ store, clock }: Pick<LocalParts, 'store' | 'clock'>,
	{ bounceSmtp, tls, log }: Pick<ServeOptions, 'bounceSmtp' | 'tls' | 'log'>,
): Promise<BounceListener | null> {
	if (bounceSmtp === null) return null;
	const verp = keptFor(pathsForMs, () => openVerp({ store, clock }));
	const reader = createReportReader();
	const record = (report: ReturnedReport) => store.writes.recordReport(report);
	const listener = await listenForBounces({
		...bounceSmtp,
		tls,
		verp,
		clock,
		ingest: async (mail) => ingestMail(mail, { verp: await verp(), clock, record, read: reader.read }),
		log,
	});
	return {
		...listener,
		close: async (options) => {
			await listener.close(options);
			await reader.close();
		},
	};
}
