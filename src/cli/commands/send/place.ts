/**
 * Where a campaign is kept and which process sends it, behind one interface for `send`. The engine and mailctl servers
 * keep it themselves; for other deployments a database of this machine does.
 */
import type { Campaigns } from '../../../api/campaigns.js';
import { ApiError, mayHaveHappened } from '../../../api/errors.js';
import type { Uuid } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { DeliverySummary } from '../../frame/connection.js';
import { CliError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';

/** One place that keeps campaigns. */
export interface CampaignPlace {
	/** A database of this machine: the service knows no campaign, and does not tell what becomes of a message it took. */
	isForeign: boolean;
	/** Opened by the campaign's name; rows are staged, then released in one stroke. */
	campaigns: Campaigns;
	/**
	 * Before anything is staged: this process alone does so until it is released or the command ends. Throws
	 * `JobError`: another process is at it (`in_use`), or the campaign was begun on a deployment of another kind.
	 */
	hold(campaign: string): Promise<void>;
	/**
	 * Sends what was released, or waits until a server has. `null`: this run does not wait, or the server does not tell.
	 * Throws `CliError`, and what was sent before stays sent; called again it goes on with what is left.
	 */
	deliver(id: Uuid, how: CampaignDelivery): Promise<DeliverySummary | null>;
}

/** How to deliver; what is absent is as the place does it by itself. */
export interface CampaignDelivery {
	/** What it is called, for what is said about it. */
	campaign: string;
	/** Messages staged: what progress is measured against. */
	total: number;
	/** Ends it after what is in flight. */
	signal: AbortSignal;
	/** Messages a second at most. */
	rate?: number;
	/** Connections, or requests at a time. */
	connections?: number;
	/** Without any outcome for so long, it gives up; milliseconds. */
	stallMs: number;
	/** False: no wait where a server sends. */
	waits: boolean;
	/** Only where an unanswered call cannot be told from a lost one: those go out again too. */
	retriesUnknown?: boolean;
}

/** A release without a clear answer may have happened; only the campaign itself can tell. Exit 13 where it cannot. */
export async function releaseOnce(
	{ place: { campaigns }, id, name }: { place: CampaignPlace; id: string; name: string },
	staged: number,
): Promise<void> {
	try {
		await campaigns.release(id, { expect_count: staged });
	} catch (error) {
		if (!(error instanceof ApiError) || !mayHaveHappened(error)) throw error;
		const state = await campaigns.status(id).then(
			(status) => status.state,
			() => null,
		);
		if (state === 'released') return;
		// An error that the service itself answered is done with by now.
		const isError = error.http !== null && error.http.status >= 500;
		if (state !== null && isError && !error.unanswered) throw error;
		throw new CliError(
			'uncertain',
			exits.uncertain,
			`the campaign may or may not be released: ${error.message}`,
			{
				hint: [mailctl('campaigns', 'resume', name), ': no recipient gets it twice'],
				cause: error,
			},
		);
	}
}
