/** Campaigns on a service that keeps none: a database of this machine keeps them, and this command makes the calls. */

import type { ForeignCampaigns, ForeignDelivered } from '../../connect/foreign-campaigns.js';
import { mailctl } from '../../frame/command-line.js';
import type { DeliverySummary } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError } from '../../frame/errors.js';
import { classify, exits, hinted } from '../../frame/exit.js';
import { paced } from '../../frame/values.js';
import { counted } from '../../render/units.js';
import { type CampaignPlace, deploymentOf } from './begin.js';
import type { RunOptions } from './release.js';
import { eachResult } from './results.js';
import { defaultWaitMs } from './watch.js';

/** Requests at a time unless `--connections` says otherwise. */
const defaultConnections = 8;

export async function foreignPlace(cx: CommandContext): Promise<CampaignPlace> {
	const { api, target } = await cx.connection();
	const { openForeignCampaigns } = await import('../../connect/foreign-campaigns.js');
	const campaigns = openForeignCampaigns(api, {
		folder: cx.paths.jobs,
		deployment: deploymentOf(target),
		clock: cx.clock,
		isTrial: cx.dryRun,
	});
	cx.atEnd(() => campaigns.close());
	return {
		isForeign: true,
		campaigns,
		// Each change of a campaign holds it.
		hold: async () => undefined,
		deliver: (id, total, options) => deliver(cx, campaigns, id, total, options),
	};
}

async function deliver(
	cx: CommandContext,
	campaigns: ForeignCampaigns,
	id: string,
	total: number,
	{ connections = defaultConnections, rate, retryUnknown, waitTimeout = defaultWaitMs }: RunOptions,
): Promise<DeliverySummary> {
	const progress = cx.progress('sending', total);
	const stall = new AbortController();
	const timer = setTimeout(() => stall.abort(new Error('no progress')), waitTimeout);
	let delivered: ForeignDelivered;
	try {
		delivered = await campaigns.deliver(id, {
			connections,
			rate: paced(rate).rate ?? null,
			uncertain: retryUnknown ? 'retry' : 'leave',
			signal: AbortSignal.any([cx.signal, stall.signal]),
			onProgress: ({ accepted, suppressed, failed, uncertain }) => {
				timer.refresh();
				const troubles = [...(failed > 0 ? [`${failed} failed`] : [])];
				if (uncertain > 0) troubles.push(`${uncertain} unknown`);
				progress.update(accepted + suppressed + failed + uncertain, troubles.join(', '));
			},
		});
	} finally {
		clearTimeout(timer);
		progress.stop();
	}
	return conclude(cx, delivered, { campaigns, id, isStalled: stall.signal.aborted });
}

/** Throws what ended it early. Exit 13 wins, because it says what must not be repeated. */
async function conclude(
	cx: CommandContext,
	{ counts, error }: ForeignDelivered,
	{ campaigns, id, isStalled }: { campaigns: ForeignCampaigns; id: string; isStalled: boolean },
): Promise<DeliverySummary> {
	const { accepted, suppressed, failed, uncertain, waiting } = counts;
	const { key } = await campaigns.status(id);
	const resume = ['campaigns', 'resume', key];
	if (uncertain > 0)
		await cx.warn(
			`${counted(uncertain, 'message')} may or may not have been sent: the service did not answer`,
			['ask a recipient first; ', mailctl(...resume, '--retry-unknown'), ' sends them again'],
		);
	if (failed > 0) await sayWhyFailed(cx, campaigns, { id, key, failed });
	const accepting = `the service accepted ${counted(accepted, 'message')}`;
	if (error === null) {
		await cx.note(`${accepting}; it does not report their delivery`);
		const outcome = { sent: accepted, deferred: 0, bounced: 0, failed, uncertain, canceled: suppressed };
		return { kind: 'settled', reason: null, counts: outcome, warnings: [] };
	}
	await cx.note(`${accepting}, ${counted(waiting, 'message')} waiting`);
	const hint = [mailctl(...resume), ' continues'];
	if (cx.signal.aborted) await cx.hint(hint);
	cx.signal.throwIfAborted();
	const message = isStalled ? 'no progress within --wait-timeout' : classify(error).message;
	if (uncertain > 0) throw new CliError('uncertain', exits.uncertain, message, { hint, cause: error });
	if (isStalled) throw new CliError('stalled', exits.outOfTime, message, { hint });
	throw hinted(error, [hint]);
}

async function sayWhyFailed(
	cx: CommandContext,
	campaigns: ForeignCampaigns,
	{ id, key, failed }: { id: string; key: string; failed: number },
): Promise<void> {
	for await (const { state, text, code } of eachResult(cx, campaigns, id)) {
		if (state !== 'failed') continue;
		const reason = text ?? code ?? 'it gave no reason';
		const results = mailctl('campaigns', 'results', key, '--save', 'FILE');
		await cx.warn(`the service refused ${counted(failed, 'message')}: ${reason}`, results);
		return;
	}
}
