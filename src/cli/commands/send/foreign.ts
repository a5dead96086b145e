/**
 * Campaigns on a deployment that keeps none: a database of this machine does, this command makes the calls itself, and says
 * why the service refused messages.
 */

import type { ForeignCampaigns, ForeignCounts, ForeignDelivered } from '../../connect/foreign-campaigns.js';
import { mailctl } from '../../frame/command-line.js';
import type { DeliverySummary } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError } from '../../frame/errors.js';
import { classify, exits, hinted } from '../../frame/exit.js';
import { counted } from '../../render/units.js';
import { type CampaignDelivery, type CampaignPlace, deploymentOf } from './begin.js';
import { eachResult } from './results.js';

/** Requests at a time unless `--connections` says otherwise. */
const defaultConnections = 8;

/** Campaigns are let go when the command ends. */
export async function foreignPlace(cx: CommandContext): Promise<CampaignPlace> {
	const { api, target } = await cx.connection();
	const { openForeignCampaigns } = await import('../../connect/foreign-campaigns.js');
	const folder = cx.paths.jobs;
	const campaigns = openForeignCampaigns(api, {
		folder,
		deployment: deploymentOf(target),
		clock: cx.clock,
		isTrial: cx.dryRun,
	});
	cx.atEnd(() => campaigns.close());
	// What changes a campaign holds it, and knows by itself what is kept elsewhere.
	return {
		isForeign: true,
		campaigns,
		hold: async () => undefined,
		deliver: (id, how) => deliver(cx, campaigns, id, how),
	};
}

async function deliver(
	cx: CommandContext,
	campaigns: ForeignCampaigns,
	id: string,
	how: CampaignDelivery,
): Promise<DeliverySummary> {
	const progress = cx.progress('sending', how.total);
	const stall = new Stall(how.stallMs);
	try {
		const delivered = await campaigns.deliver(id, {
			connections: how.connections ?? defaultConnections,
			rate: how.rate ?? null,
			uncertain: how.retriesUnknown === true ? 'retry' : 'leave',
			signal: AbortSignal.any([how.signal, stall.signal]),
			onProgress: (counts) => {
				stall.moved();
				progress.update(
					counts.accepted + counts.suppressed + counts.failed + counts.uncertain,
					troublesOf(counts),
				);
			},
		});
		progress.stop();
		return await conclude(cx, delivered, { campaigns, id, stall });
	} finally {
		stall.stop();
		progress.stop();
	}
}

/** Throws what ended it early; 13 goes before everything else, because it is about what must not be repeated. */
async function conclude(
	cx: CommandContext,
	{ counts, error }: ForeignDelivered,
	{ campaigns, id, stall }: { campaigns: ForeignCampaigns; id: string; stall: Stall },
): Promise<DeliverySummary> {
	const { key } = await campaigns.status(id);
	const resume = ['campaigns', 'resume', key];
	if (counts.uncertain > 0) {
		await cx.warn(
			`${counted(counts.uncertain, 'message')} may or may not have been sent: the service did not answer`,
			[
				'look at the report or ask one of them; ',
				mailctl(...resume, '--retry-unknown'),
				' sends to them again',
			],
		);
	}
	const rest = { counts: outcomeOf(counts), warnings: [] };
	if (counts.failed > 0) await sayWhyFailed(cx, campaigns, { id, key, failed: counts.failed });
	if (error === null) {
		await cx.note(
			`the service took ${counted(counts.accepted, 'message')}; it does not tell what became of them`,
		);
		return { kind: 'settled', reason: null, ...rest };
	}
	await cx.note(
		`the service took ${counted(counts.accepted, 'message')}, ${counted(counts.waiting, 'message')} waiting`,
	);
	const hint = [mailctl(...resume), ' goes on'];
	const isStalled = stall.signal.aborted;
	const isPlain = counts.uncertain === 0 && !isStalled;
	if (cx.signal.aborted) await cx.hint(hint);
	cx.signal.throwIfAborted();
	if (isPlain) throw hinted(error, [hint]);
	const message = isStalled ? 'no progress within --wait-timeout' : classify(error).message;
	if (counts.uncertain === 0) throw new CliError('stalled', exits.outOfTime, message, { hint });
	throw new CliError('uncertain', exits.uncertain, message, { hint, cause: error });
}

/** A message that the service took counts as sent: this machine sees no further. */
function outcomeOf({ accepted, suppressed, failed, uncertain }: ForeignCounts): DeliverySummary['counts'] {
	return { sent: accepted, deferred: 0, bounced: 0, failed, uncertain, canceled: suppressed };
}

function troublesOf({ failed, uncertain }: ForeignCounts): string {
	const parts = [failed > 0 ? `${failed} failed` : '', uncertain > 0 ? `${uncertain} unknown` : ''];
	return parts.filter((part) => part !== '').join(', ');
}

/** Aborts after so long without `moved`. */
class Stall {
	readonly #controller = new AbortController();
	readonly #timer: NodeJS.Timeout;

	constructor(ms: number) {
		this.#timer = setTimeout(() => this.#controller.abort(new Error('no progress')), ms);
	}

	get signal(): AbortSignal {
		return this.#controller.signal;
	}

	moved(): void {
		this.#timer.refresh();
	}

	stop(): void {
		clearTimeout(this.#timer);
	}
}

/** The first reason stands for all; results have each. */
async function sayWhyFailed(
	cx: CommandContext,
	campaigns: ForeignCampaigns,
	{ id, key, failed }: { id: string; key: string; failed: number },
): Promise<void> {
	for await (const { state, text, code } of eachResult(cx, campaigns, id)) {
		if (state !== 'failed') continue;
		await cx.warn(`the service refused ${counted(failed, 'message')}: ${text ?? code ?? 'no reason told'}`, [
			mailctl('campaigns', 'resume', key, '--results', 'FILE'),
			' names every message and its reason',
		]);
		return;
	}
}
