/**
 * Campaigns for a service without campaigns. A local database per service stores them. The local engine stages and
 * leases their messages, and the service's send API delivers each message.
 */

import { randomUUID } from 'node:crypto';
import type { Api } from '../../api/api.js';
import type { CampaignStatus, Campaigns } from '../../api/campaigns.js';
import type { Clock } from '../../api/datetime.js';
import { ApiError, invalid, notFound } from '../../api/errors.js';
import { campaignFields } from '../../api/messages.js';
import type { Uuid } from '../../api/records.js';
import { ApiCourier } from '../../delivery/api/courier.js';
import { Run, runDefaults } from '../../delivery/run.js';
import { createCampaigns } from '../../engine/campaigns.js';
import { newUuid } from '../../engine/rules/campaign-rows.js';
import { type FileLock, jobFiles } from '../../jobs/job-files.js';
import { Pace, type Sleep } from '../../jobs/pace.js';
import { peopleOfList } from '../../jobs/subscriber-pages.js';
import { leaseOwner } from '../../store/core/processes.js';
import { openStore } from '../../store/open.js';
import type { Store } from '../../store/store.js';
import { isMissingFile } from '../../store/url.js';

interface ForeignOptions {
	folder: string;
	deployment: string;
	clock: Clock;
	isTrial?: boolean;
	sleep?: Sleep;
}

export interface ForeignDelivery {
	connections: number;
	rate: number | null;
	uncertain: 'leave' | 'retry';
	signal?: AbortSignal;
	onProgress?: (counts: ForeignCounts) => void;
}

/** `suppressed` counts recipients for whom the service accepted the call but created no message. */
type ForeignCounts = Record<'waiting' | 'accepted' | 'suppressed' | 'failed' | 'uncertain', number>;

export interface ForeignDelivered {
	counts: ForeignCounts;
	error: unknown;
}

/**
 * Methods that change a campaign lock the campaign until `close`. They throw `JobError` if another process holds the
 * lock. `results` includes recipients from lists.
 */
export class ForeignCampaigns implements Campaigns {
	readonly #api: Api;
	readonly #options: ForeignOptions;
	readonly #files: ReturnType<typeof jobFiles>;
	readonly #keys = new Map<Uuid, string>();
	readonly #locks = new Map<string, Promise<FileLock>>();
	#store: Promise<Store> | null = null;

	constructor(api: Api, options: ForeignOptions) {
		this.#api = api;
		this.#options = options;
		this.#files = jobFiles(options.folder, options.deployment);
	}

	readonly open: Campaigns['open'] = async (key, spec, call) => {
		assertSpec(spec);
		if (key !== null) await this.#hold(key);
		const campaigns = await this.#campaigns('create');
		const session = await campaigns.open(key, spec, call);
		this.#keys.set(session.id, session.key);
		if (key !== null) return session;
		try {
			await this.#hold(session.key);
		} catch (error) {
			await campaigns.cancel(session.id, { forget: true });
			throw error;
		}
		return session;
	};

	readonly check: Campaigns['check'] = async (key, spec, call) => {
		assertSpec(spec);
		if (key !== null) this.#files.assertNotThere(key);
		await (await this.#campaigns('create')).check(key, spec, call);
	};

	readonly put: Campaigns['put'] = async (id, batch) => (await this.#writing(id)).put(id, batch);

	readonly putRequests: Campaigns['putRequests'] = async (id, batch) =>
		(await this.#writing(id)).putRequests(id, batch);

	readonly complete: Campaigns['complete'] = async (id, at) => (await this.#writing(id)).complete(id, at);

	readonly release: Campaigns['release'] = async (id, expected) =>
		(await this.#writing(id)).release(id, expected);

	readonly cancel: Campaigns['cancel'] = async (id, call) => (await this.#writing(id)).cancel(id, call);

	readonly status: Campaigns['status'] = async (id) => (await this.#campaigns('existing')).status(id);

	readonly results: Campaigns['results'] = async (id, request) =>
		(await this.#campaigns('existing')).results(id, request);

	readonly page: Campaigns['page'] = async (request) => {
		if (request.key !== undefined) this.#files.assertNotThere(request.key);
		if (!this.#isThere) return { count: 0, next: null, previous: null, results: [] };
		const page = await (await this.#campaigns('existing')).page(request);
		for (const { id, key } of page.results) this.#keys.set(id, key);
		return page;
	};

	/** After an interruption, a repeated call reads the list from the start, because the list may have changed. */
	readonly addList: Campaigns['addList'] = async (id, listId, call) => {
		await this.#writing(id);
		const { writes } = await this.#opened('existing');
		const add = async (
			part: 'first' | 'next' | 'last',
			people: Parameters<typeof writes.addPeopleToCampaign>[0]['people'],
		) => {
			const now = this.#options.clock.now();
			const added = await writes.addPeopleToCampaign({ campaign: id, list_id: listId, part, people, now });
			switch (added.kind) {
				case 'acknowledged':
					return added;
				case 'not_found':
					throw notFound();
				case 'closed':
					throw new ApiError('conflict', `This campaign is ${added.state}: it takes no more recipients.`);
				case 'other_rows':
					throw new ApiError('conflict', 'This campaign was started with different recipients.');
			}
		};
		const begun = await add('first', []);
		if (begun.isWhole) return begun.ack;
		for await (const people of peopleOfList(this.#api, listId, call?.signal)) await add('next', people);
		return (await add('last', [])).ack;
	};

	/** Throws errors of the store, and `conflict` if the campaign is not released. */
	async deliver(id: Uuid, how: ForeignDelivery): Promise<ForeignDelivered> {
		const { connections, rate, uncertain, onProgress } = how;
		const campaigns = await this.#writing(id);
		const { state } = await campaigns.status(id);
		if (state !== 'released') throw new ApiError('conflict', `This campaign is ${state}.`);
		const { queue, reads, writes } = await this.#opened('existing');
		const { clock, sleep } = this.#options;
		await writes.retryUncertain({ campaign: id, isAgain: uncertain === 'retry', now: clock.now() });
		const before = countsOf(await campaigns.status(id));
		const signal = how.signal ?? new AbortController().signal;
		const pace = new Pace({ signal, ...(sleep !== undefined && { sleep }) });
		const send = (request: Parameters<Api['send']>[0]) => pace.write((call) => this.#api.send(request, call));
		const paced = rate === null ? {} : { rate };
		const courier = new ApiCourier({ reads, queue, send, connections, signal, ...paced });
		const run = new Run(
			{
				...runDefaults,
				...{ queue, reads, clock, connections, ...paced },
				alone: true,
				owner: leaseOwner(randomUUID().slice(0, 8)),
				onProgress: (now) =>
					onProgress?.({
						waiting: before.waiting,
						accepted: before.accepted + now.sent,
						suppressed: before.suppressed + now.canceled,
						failed: before.failed + now.failed,
						uncertain: before.uncertain + now.uncertain,
					}),
			},
			courier,
			{ scope: { campaign: id }, until: 'settled', signal },
		);
		const { kind } = await run.finish();
		const { error } = courier;
		if (error !== null && !(error instanceof ApiError)) throw error;
		const counts = countsOf(await campaigns.status(id));
		const isCutShort = kind === 'aborted' && counts.waiting > 0;
		return { counts, error: error ?? (isCutShort ? signal.reason : null) };
	}

	async has(key: string): Promise<boolean> {
		return this.#isThere && (await (await this.#campaigns('existing')).page({ key, page_size: 1 })).count > 0;
	}

	async close(): Promise<void> {
		const locks = await Promise.allSettled(this.#locks.values());
		this.#locks.clear();
		const opened = this.#store;
		this.#store = null;
		await (await opened?.catch(() => null))?.close();
		for (const lock of locks) if (lock.status === 'fulfilled') await lock.value.release();
	}

	get #isThere(): boolean {
		return this.#store !== null || !isMissingFile(this.#files.database);
	}

	async #hold(key: string): Promise<void> {
		if (this.#options.isTrial === true) return this.#files.assertNotThere(key);
		const holding = this.#locks.get(key) ?? this.#files.hold(key, `this campaign ("${key}")`);
		this.#locks.set(key, holding);
		// Forget a refused lock, because the other process may release it before the next call.
		holding.catch(() => this.#locks.delete(key));
		await holding;
		this.#files.assertNotThere(key);
	}

	#opened(mode: 'create' | 'existing'): Promise<Store> {
		if (mode === 'existing' && !this.#isThere) throw notFound();
		const { clock, isTrial = false } = this.#options;
		const isImagined = isTrial && !this.#isThere;
		const path = isImagined ? ':memory:' : this.#files.database;
		this.#store ??= openStore(path, { clock, mode, hasShortLog: !isImagined, isTrial });
		return this.#store;
	}

	async #campaigns(mode: 'create' | 'existing'): Promise<Campaigns> {
		const { clock } = this.#options;
		const newId = () => newUuid(clock.now());
		return createCampaigns({ store: await this.#opened(mode), clock, newId, courier: 'api' });
	}

	async #writing(id: Uuid): Promise<Campaigns> {
		const campaigns = await this.#campaigns('existing');
		await this.#hold(this.#keys.get(id) ?? (await campaigns.status(id)).key);
		return campaigns;
	}
}

function assertSpec(spec: Parameters<Campaigns['open']>[1]): void {
	if ('requests' in spec) return;
	const parsed = campaignFields.parse(spec);
	if (parsed.kind === 'invalid') throw invalid(parsed.errors);
}

function countsOf({ messages }: CampaignStatus): ForeignCounts {
	const { queued = 0, accepted = 0, canceled = 0, failed = 0, uncertain = 0 } = messages;
	return { waiting: queued, accepted, suppressed: canceled, failed, uncertain };
}
