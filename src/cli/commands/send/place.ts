/**
 * Chooses where a campaign is stored and who sends it: the local engine or a mailctl server. For a service without
 * campaigns, a local database stores them, and this command makes the send calls.
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
import { defaultWaitMs, deliverNow } from './delivery.js';
import type { RunOptions } from './options.js';
import { eachResult } from './report.js';

export interface CampaignPlace {
	/** True if a local database stores the campaigns, because the service has none and reports no outcomes. */
	isForeign: boolean;
	/** `open` locks the campaign. `release` releases all its rows in one transaction. */
	campaigns: Campaigns;
	/**
	 * Locks staging of the campaign for this process until its release or the end of the command. Throws `JobError` if
	 * another process has the lock (`in_use`), or if a local database has the campaign (`other_road`).
	 */
	hold(campaign: string): Promise<void>;
	/**
	 * Sends released messages, or waits until a server has sent them. Null if this run does not wait, or the server
	 * reports no outcomes. After a `CliError`, another call sends the remaining messages.
	 */
	deliver(id: Uuid, total: number, options: RunOptions): Promise<DeliverySummary | null>;
}

/**
 * If the target does not support campaigns, returns those of a local database. Call this function once per command,
 * because its result holds the locks. Without a lock, two processes that stage one campaign would overwrite each
 * other's rows.
 */
export async function campaignPlace(cx: CommandContext): Promise<CampaignPlace> {
	const { api, target } = await cx.connection();
	const { campaigns } = (await api.capabilities()).ext;
	if (campaigns === undefined) return new ForeignPlace(cx, await openForeign(cx));
	const { jobFiles } = await import('../../../jobs/job-files.js');
	const files = jobFiles(cx.paths.jobs, deploymentOf(target));
	const locks = new Map<string, FileLock | null>();
	const letGo = async () => {
		const held = [...locks.values()];
		locks.clear();
		for (const lock of held) await lock?.release();
	};
	cx.atEnd(letGo);
	const hold = async (key: string) => {
		if (locks.has(key)) return;
		locks.set(key, await unlessRefused(files.hold(key, `the campaign "${key}"`)));
		if (target.kind !== 'remote') return;
		await unlessRefused(assertNotHere(cx, files.database, key));
		// Record on this machine that a server has the campaign. If the server later answers with an error page, it looks
		// like a service without campaigns. Without the record, this command would send everything again from a local
		// database.
		await unlessRefused(files.leaveToDeployment(key));
	};
	return {
		isForeign: false,
		campaigns: {
			...campaigns,
			open: async (key, spec, call) => {
				if (key !== null) await hold(key);
				const session = await campaigns.open(key, spec, call);
				await hold(session.key).catch(async (error: unknown) => {
					if (key === null) await campaigns.cancel(session.id, { forget: true });
					throw error;
				});
				return session;
			},
			release: async (id, expected, call) => {
				await campaigns.release(id, expected, call);
				await letGo();
			},
		},
		hold,
		deliver: (id, total, options) => deliverNow({ cx, scope: { campaign: id }, total, options }),
	};
}

/** Normalizes the URL or path of the target, so that all its spellings share the same files on this machine. */
function deploymentOf(target: Connection['target']): string {
	if (target.kind === 'remote') return new URL(target.baseUrl).href.replace(/(?<!\/)\/+$/, '');
	if (isPostgres(target.url)) return shownDatabase(target.url);
	return target.url.startsWith('file:') ? target.url : resolve(target.url);
}

async function assertNotHere(cx: CommandContext, database: string, key: string): Promise<void> {
	if (isMissingFile(database)) return;
	const { keptHere } = await import('../../../jobs/job-files.js');
	const campaigns = await openForeign(cx);
	try {
		if (await campaigns.has(key)) throw keptHere(key, database);
	} finally {
		await campaigns.close();
	}
}

async function openForeign(cx: CommandContext): Promise<ForeignCampaigns> {
	const { api, target } = await cx.connection();
	const { ForeignCampaigns } = await import('../../connect/foreign-campaigns.js');
	const { clock, dryRun: isTrial, paths } = cx;
	return new ForeignCampaigns(api, { folder: paths.jobs, deployment: deploymentOf(target), clock, isTrial });
}

/**
 * Throws only `in_use` and `other_road`. A container may have no writable home folder, which must not stop a campaign.
 */
async function unlessRefused<T>(work: Promise<T>): Promise<T | null> {
	return work.catch((error: unknown) => {
		if (error instanceof JobError && (error.code === 'in_use' || error.code === 'other_road')) throw error;
		return null;
	});
}

const defaultConnections = 8;

class ForeignPlace implements CampaignPlace {
	readonly isForeign = true;
	readonly campaigns: ForeignCampaigns;
	readonly #cx: CommandContext;

	constructor(cx: CommandContext, campaigns: ForeignCampaigns) {
		this.campaigns = campaigns;
		this.#cx = cx;
		cx.atEnd(() => campaigns.close());
	}

	/** Does nothing, because each write locks the campaign anyway. */
	async hold(): Promise<void> {}

	async deliver(id: Uuid, total: number, options: RunOptions): Promise<DeliverySummary> {
		const { connections = defaultConnections, rate, retryUnknown, waitTimeout = defaultWaitMs } = options;
		const progress = this.#cx.progress('sending', total);
		const stall = new AbortController();
		const timer = setTimeout(() => stall.abort(new Error('no progress')), waitTimeout);
		try {
			const delivered = await this.campaigns.deliver(id, {
				connections,
				rate: paced(rate).rate ?? null,
				uncertain: retryUnknown ? 'retry' : 'leave',
				signal: AbortSignal.any([this.#cx.signal, stall.signal]),
				onProgress: ({ accepted, suppressed, failed, uncertain }) => {
					timer.refresh();
					const troubles = [...(failed > 0 ? [`${failed} failed`] : [])];
					if (uncertain > 0) troubles.push(`${uncertain} unknown`);
					progress.update(accepted + suppressed + failed + uncertain, troubles.join(', '));
				},
			});
			progress.stop();
			return await this.#conclude(id, delivered, stall.signal.aborted);
		} finally {
			clearTimeout(timer);
			progress.stop();
		}
	}

	async #conclude(
		id: Uuid,
		{ counts, error }: ForeignDelivered,
		isStalled: boolean,
	): Promise<DeliverySummary> {
		const cx = this.#cx;
		const { accepted, suppressed, failed, uncertain, waiting } = counts;
		const { key } = await this.campaigns.status(id);
		const resume = ['campaigns', 'resume', key];
		if (uncertain > 0)
			await cx.warn(
				`${counted(uncertain, 'message')} may or may not have been sent: the service sent no confirmation`,
				['ask a recipient first; ', mailctl(...resume, '--retry-unknown'), ' sends the messages again'],
			);
		if (failed > 0)
			await cx.warn(
				`the service refused ${counted(failed, 'message')}: ${await this.#firstRefusal(id)}`,
				mailctl('campaigns', 'results', key, '--save', 'FILE'),
			);
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

	async #firstRefusal(id: Uuid): Promise<string> {
		for await (const { state, text, code } of eachResult(this.#cx, this.campaigns, id))
			if (state === 'failed') return text ?? code ?? 'it gave no reason';
		return 'it gave no reason';
	}
}
