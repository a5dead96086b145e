/** Webhooks that get no notifications any more, or fail for long. */

import { type Clock, type Micros, microsPerDay } from '../../../api/datetime.js';
import { withoutSecrets } from '../../../api/quote.js';
import { counted } from '../../render/plurals.js';
import { momentText } from '../../render/times.js';
import { untilText } from '../../render/units.js';
import type { ContentsCheck } from '../contents-checks.js';
import type { InspectedWebhook } from '../inspection.js';
import { type Check, type CheckEnvironment, ok, problem, type Verdict, warning } from '../model.js';

/** `webhooks.deliveries`: an answer for each webhook that something is wrong with. */
export function webhookChecks(
	ofContents: ContentsCheck,
	clock: Clock,
	around: Pick<CheckEnvironment, 'line' | 'zone'>,
): Check[] {
	return [
		{
			name: 'webhooks.deliveries',
			run: ofContents(async ({ webhooks }) => {
				const all = await webhooks();
				const found = all.map((webhook) => judgeWebhook(webhook, { now: clock.now(), ...around }));
				const complaints = found.filter((verdict) => verdict !== null);
				if (complaints.length > 0) return complaints;
				if (all.length === 0) return ok('there are no webhooks');
				return ok(
					all.length === 1
						? '1 webhook gets what it is told'
						: `${all.length} webhooks get what they are told`,
				);
			}),
		},
	];
}

/** Null: no complaint. */
function judgeWebhook(
	{ id, url, stopped, failedLately, deliveredLately, oldestRetried }: InspectedWebhook,
	{ now, line, zone }: { now: Micros } & Pick<CheckEnvironment, 'line' | 'zone'>,
): Verdict | null {
	const name = `webhook ${id} (${withoutSecrets(url)})`;
	if (stopped !== null) {
		const { since, waiting } = stopped;
		const left =
			waiting === 0 ? '' : `, and ${counted(waiting, 'notification')} ${waiting === 1 ? 'waits' : 'wait'}`;
		return problem(
			`${name} answered 410 Gone: it is told nothing since ${momentText(since, zone)}${left}`,
			line('webhooks', 'replay', String(id), '--failed'),
		);
	}
	if (failedLately > 0 && deliveredLately === 0)
		return problem(
			`${name} took nothing in a day: ${counted(failedLately, 'notification')} failed for good`,
			line('webhooks', 'test', String(id)),
		);
	if (oldestRetried !== null) {
		const { since, next, said, tookOthersSince } = oldestRetried;
		// A single refused body is no fault of the target, unless refusals go on.
		if (!tookOthersSince || now - since > microsPerDay) {
			const again = next === null ? '' : `; tried again ${untilText(next, { now, zone })}`;
			return warning(
				`${name} is tried in vain since ${momentText(since, zone)}: ${said}${again}`,
				line('webhooks', 'deliveries', String(id)),
			);
		}
	}
	if (failedLately > 0)
		return warning(
			`${name} failed ${counted(failedLately, 'notification')} for good in a day`,
			line('webhooks', 'deliveries', String(id), '--state', 'failed'),
		);
	return null;
}
