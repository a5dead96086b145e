/**
 * The place that keeps a campaign and sends it: the engine or a mailctl server. For a service without campaigns a database of
 * this machine keeps them, and this command makes the calls.
 */

import { resolve } from 'node:path';
import type { Campaigns } from '../../../api/campaigns.js';
import type { Uuid } from '../../../api/records.js';
import { JobError } from '../../../jobs/errors.js';
import type { FileLock } from '../../../jobs/job-files.js';
import { isMissingFile, isPostgres, shownDatabase } from '../../../store/url.js';
import type { ForeignCampaigns, ForeignDelivered } from '../../connect/foreign-campaigns.js';
import { mailctl } from '../../frame/command-line.js';
import type { Connection, DeliverySummary } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError } from '../../frame/errors.js';
import { classify, exits, hinted } from '../../frame/exit.js';
import { paced } from '../../frame/values.js';
import { counted } from '../../render/units.js';
import type { RunOptions } from './release.js';
import { eachResult } from './results.js';
import { defaultWaitMs, deliverNow } from './watch.js';

export interface CampaignPlace {
	/** A database of this machine: the service has no campaigns, and does not tell the outcome of a message. */
	isForeign: boolean;
	/** Opened by the campaign's name; rows are staged, then released in one stroke. */
	campaigns: Campaigns;
	/**
	 * Lets this process alone stage the campaign, until the release or the end of the command. Throws `JobError` where
	 * another process holds it (`in_use`), or where the campaign began on a service of another kind.
	 */
	hold(campaign: string): Promise<void>;
	/**
	 * Sends what was released, or waits until a server has. Null: this run does not wait, or the server does not tell.
	 * Another call after a `CliError` sends the rest.
	 */
	deliver(id: Uuid, total: number, options: RunOptions): Promise<DeliverySummary | null>;
}

/**
 * The campaigns of the target, else of a database of this machine. Ask once a command, which holds the campaigns it opened:
 * two processes that stage the same campaign would overwrite each other's rows. This machine also remembers that a server has
 * a campaign: a page in its place may look like another service, and everyone would get the mail again.
 */
export async function campaignPlace(cx: CommandContext): Promise<CampaignPlace> {
	const { api, target } = await cx.connection();
	const { campaigns } = (await api.capabilities()).ext;
	if (campaigns === undefined) return foreignPlace(cx);
	const { jobFiles } = await import('../../../jobs/job-files.js');
	const files = jobFiles(cx.paths.jobs, deploymentOf(target));
	let lock: FileLock | null = null;
	const letGo = async () => {
		const had = lock;
		lock = null;
		await had?.release();
	};
	return {
		isForeign: false,
		campaigns: {
			...campaigns,
			release: async (id, expected, call) => {
				await campaigns.release(id, expected, call);
				await letGo();
			},
		},
		hold: async (campaign) => {
			lock = await unlessRefused(files.hold(campaign, `the campaign "${campaign}"`));
			cx.atEnd(letGo);
			if (target.kind !== 'remote') return;
			await unlessRefused(assertNotHere(cx, files.database, campaign));
			await unlessRefused(files.leaveToDeployment(campaign));
		},
		deliver: (id, total, options) =>
			deliverNow(cx, { campaign: id }, total, { ...options, rate: paced(options.rate).rate }),
	};
}

/** Campaigns of a target are filed under it on this machine, however its URL or path is written. */
function deploymentOf(target: Connection['target']): string {
	if (target.kind === 'remote') return new URL(target.baseUrl).href.replace(/(?<!\/)\/+$/, '');
	if (isPostgres(target.url)) return shownDatabase(target.url);
	return target.url.startsWith('file:') ? target.url : resolve(target.url);
}

/** Throws `JobError` `other_road` where the database of this machine has the campaign. */
async function assertNotHere(cx: CommandContext, database: string, key: string): Promise<void> {
	if (isMissingFile(database)) return;
	const [{ openForeignCampaigns }, { keptHere }] = await Promise.all([
		import('../../connect/foreign-campaigns.js'),
		import('../../../jobs/job-files.js'),
	]);
	const { api, target } = await cx.connection();
	const options = { folder: cx.paths.jobs, deployment: deploymentOf(target), clock: cx.clock };
	const campaigns = openForeignCampaigns(api, options);
	try {
		if (await campaigns.has(key)) throw keptHere(key, database);
	} finally {
		await campaigns.close();
	}
}

/** A container may have no writable home, which must not stop a campaign. */
async function unlessRefused<T>(work: Promise<T>): Promise<T | null> {
	return work.catch((error: unknown) => {
		if (error instanceof JobError && (error.code === 'in_use' || error.code === 'other_road')) throw error;
		return null;
	});
}

/** Requests at a time unless `--connections` says otherwise. */
const defaultConnections = 8;

async function foreignPlace(cx: CommandContext): Promise<CampaignPlace> {
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
