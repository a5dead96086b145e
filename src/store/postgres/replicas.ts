/**
 * Reads that replicas answer (`?replica=`), so that reports and exports are no work of the primary. A replica answers
 * where it has everything that this process wrote, and what others wrote up to a few seconds ago; else the primary does.
 *
 * Where a replica is: PostgreSQL, 9.27.4 "Recovery Control Functions" and 9.27.12 "Control Data Functions".
 */
import { setTimeout } from 'node:timers/promises';
import { backoff } from '../../api/backoff.js';
import { type Micros, microsPerMs, microsPerSecond } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import type { Sql } from '../core/sql.js';
import type { ReplicaFacts } from '../maintenance.js';
import type { Reads } from '../store.js';
import { type Database, type DatabaseOptions, openDatabase, type Session } from './connection.js';
import type { Replica } from './place.js';

type Source = 'primary' | 'replica';

/**
 * `replica`: for people who look, and for exports; nothing is decided by it. `primary`: a write depends on it, or it must
 * tell what another process has just done: where a campaign stands, what became of its messages.
 */
const sources: {
	readonly [Name in keyof Reads]: Source | ((command: Parameters<Reads[Name]>[0]) => Source);
} = {
	pageLists: 'primary',
	getList: 'primary',
	getListDetails: 'primary',
	pageSubscribers: 'primary',
	encodeSubscriberPage: 'primary',
	getSubscriber: 'primary',
	sliceSubscribers: 'replica',
	encodeSubscriberSlice: 'replica',
	encodeSubscriberTuples: 'replica',
	pageFields: 'primary',
	getField: 'primary',
	countFieldUses: 'primary',
	fieldErrors: 'primary',
	pageWebhooks: 'primary',
	getWebhook: 'primary',
	stoppedWebhooks: 'primary',
	pageDeliveries: 'replica',
	getDelivery: 'primary',
	pageTemplates: 'primary',
	getTemplate: 'primary',
	pageSuppressions: 'primary',
	sliceSuppressions: 'replica',
	findSuppression: 'primary',
	compareSuppressions: 'primary',
	findAttachment: 'primary',
	getAttachment: 'primary',
	pageSenders: 'primary',
	getSender: 'primary',
	findSender: 'primary',
	pageMessages: 'replica',
	sliceMessages: 'replica',
	getMessage: 'primary',
	getOldMessage: 'primary',
	getSubmission: 'primary',
	getPerson: 'replica',
	slicePersonMessages: 'replica',
	campaignStatus: 'primary',
	foreseeAudience: 'primary',
	sliceLeftOut: 'primary',
	// By its name or UUID one is looked for that is to be changed; by its state, the one that is to go on.
	pageCampaigns: ({ id, key, state }) => ((id ?? key ?? state) === undefined ? 'replica' : 'primary'),
	sliceCampaignResults: 'primary',
	countMessages: 'primary',
	countWaiting: 'primary',
	sliceImportAddresses: 'primary',
	foreseeReport: 'primary',
	nextDue: 'primary',
	nextTurn: 'primary',
	holdsOfMessage: 'primary',
	limitWaits: 'replica',
	queuePauses: 'primary',
	queueState: 'replica',
	hasWorker: 'primary',
	reportFigures: 'replica',
	campaignLife: 'replica',
	linkFigures: 'replica',
	reportDetails: 'replica',
	getSettings: 'primary',
	takesWrites: 'primary',
	listTokens: 'primary',
	findToken: 'primary',
	listDkimKeys: 'primary',
	status: 'replica',
	secretCounts: 'primary',
	// What was repaired a moment ago is no alarm.
	checkCounts: 'primary',
	sizes: 'replica',
	foreseeRetention: 'replica',
	deletedMessages: 'replica',
};

/** `command`: that of the operation. */
function sourceOf(operation: string, command: unknown): Source {
	const source: Source | ((command: unknown) => Source) | undefined = Reflect.get(sources, operation);
	return typeof source === 'function' ? source(command) : (source ?? 'primary');
}

export interface Replicas {
	/** As `Database.read`: by a replica where this operation may be, else by the primary. */
	read<R>(
		operation: { name: string; command: unknown },
		operate: (session: Session) => Promise<R>,
	): Promise<R>;
	/** A write of this process has ended: its next reads see it. */
	wrote(): void;
	close(): Promise<void>;
}

/** How far a replica may be behind. */
const mostBehindMs = 5_000;
/** How long one that is behind is waited for: what it lacks is mostly some milliseconds old. `told`: before a warning. */
const patienceMs = { silent: 200, told: 1_000 };
const lookEveryMs = 20;
/** For so long a position of the primary serves further reads. */
const positionFreshMs = 1_000;
/** How long one that failed is left alone; and one that only lacks what this process wrote. */
const rests = { first: 5_000, longest: 60_000, short: 1_000 };

interface Known extends Replica {
	database: Database;
	/** In a row. */
	failures: number;
	/** Of `performance.now`. */
	restsUntil: number;
}

/** Connects when a replica is first read. `warn` is told when one fails, and again only after it has answered. */
export function openReplicas(
	primary: Database,
	options: DatabaseOptions,
	warn: (text: string) => void,
): Replicas {
	const all = options.place.replicas.map(
		(replica): Known => ({ ...replica, database: openReplica(replica, options), failures: 0, restsUntil: 0 }),
	);
	// Processes share the work among them.
	const first = Math.floor(Math.random() * all.length);
	const inTurn = [...all.slice(first), ...all.slice(0, first)];
	let lastWrite = Number.NEGATIVE_INFINITY;
	/** The primary's, and when it was asked for. */
	let known: { look: Promise<Look>; asked: number } | null = null;
	const positionOfPrimary = (asked: number) => {
		if (known === null || known.asked <= lastWrite || asked - known.asked > positionFreshMs) {
			const fresh = { look: primary.read(({ sql }) => lookAt(sql)), asked };
			fresh.look.catch(() => {
				if (known === fresh) known = null;
			});
			known = fresh;
		}
		return known.look;
	};
	/** Throws `Unfit` where the replica may not answer. */
	const readFrom = async <R>({ database, isHost }: Known, operate: (session: Session) => Promise<R>) => {
		const began = performance.now();
		const [position, look] = await Promise.allSettled([positionOfPrimary(began), lookFrom(database)]);
		if (position.status === 'rejected') throw position.reason;
		if (look.status === 'rejected') throw look.reason;
		const wanted = position.value;
		assertFollows(look.value, wanted, isHost);
		const lag = lagOf(look.value, wanted) === 0 ? 0 : await lagInAWhile(database, wanted);
		if (lag > mostBehindMs * microsPerMs) throw new Unfit(`is ${lateText(lag)}`);
		if (lag > 0 && began - lastWrite < mostBehindMs) throw new Unfit(null, rests.short);
		const answer = await database.read(operate).catch(failed);
		// There is none, or not yet.
		if (answer === null) throw new Unfit(null);
		return answer;
	};
	const rest = (replica: Known, { why, restMs }: Unfit) => {
		if (why !== null) replica.failures += 1;
		const ms = why === null ? restMs : backoff(rests, replica.failures);
		replica.restsUntil = performance.now() + ms;
		if (replica.failures === 1 && why !== null)
			warn(`the replica ${replica.host} ${why}: the primary answers in its place`);
	};
	return {
		read: async ({ name, command }, operate) => {
			if (sourceOf(name, command) === 'primary') return await primary.read(operate);
			const replica = inTurn.find(({ restsUntil }) => restsUntil <= performance.now());
			if (replica === undefined) return await primary.read(operate);
			try {
				const answer = await readFrom(replica, operate);
				replica.failures = 0;
				return answer;
			} catch (error) {
				if (!(error instanceof Unfit)) throw error;
				rest(replica, error);
				return await primary.read(operate);
			}
		},
		wrote: () => {
			lastWrite = performance.now();
		},
		close: async () => {
			await Promise.all(all.map(({ database }) => database.close()));
		},
	};
}

/** For `doctor`: each replica of the place, compared with the primary. */
export async function inspectReplicas(primary: Database, options: DatabaseOptions): Promise<ReplicaFacts[]> {
	return await Promise.all(
		options.place.replicas.map(async (replica): Promise<ReplicaFacts> => {
			const database = openReplica(replica, options);
			const { host } = replica;
			try {
				const wanted = await primary.read(({ sql }) => lookAt(sql));
				const seen = await database.read(({ sql }) => lookAt(sql));
				const isOther = seen.system !== wanted.system;
				const behind = isOther ? 0 : await lagInAWhile(database, wanted);
				return { host, isOther, isReplica: seen.follows === 1, behind, failure: null };
			} catch (error) {
				const failure = error instanceof Error ? error.message : String(error);
				return { host, isOther: false, isReplica: false, behind: 0, failure };
			} finally {
				await database.close();
			}
		}),
	);
}

function openReplica({ url }: Replica, options: DatabaseOptions): Database {
	const place = { ...options.place, urls: [url], isPrimaryWanted: false };
	return openDatabase({ ...options, place, isReplica: true });
}

/** Where a server is. */
interface Look {
	/** A server and its replicas have one: 64 bits, as text. */
	system: string;
	/** 1: it is a replica. */
	follows: number;
	/** In octets of the write-ahead log: what is on the primary's disk, or can be seen on a replica. */
	position: number;
	/** `xmin:xmax:xip`: transactions that can be seen (PostgreSQL, 9.27.8). */
	snapshot: string;
	/** When the last transaction that a replica has was committed, by the clock of the primary; null: none since its start. */
	replayed: Micros | null;
	now: Micros;
}

async function lookAt(sql: Sql): Promise<Look> {
	const look = await sql.get<Look>(
		`SELECT CAST(system_identifier AS TEXT) AS system, pg_is_in_recovery() AS follows,
			CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END
				- CAST('0/0' AS pg_lsn) AS position,
			CAST(pg_current_snapshot() AS TEXT) AS snapshot,
			floor(extract(epoch FROM pg_last_xact_replay_timestamp()) * 1000000) AS replayed,
			floor(extract(epoch FROM clock_timestamp()) * 1000000) AS now
		FROM pg_control_system()`,
	);
	if (look === undefined) throw new Error('the server does not say where it is');
	return look;
}

/** Zero: it has all that the primary had. A replica of an idle primary has nothing new, however long ago that was. */
function lagOf(seen: Look, primary: Look): Micros {
	// The disk may end amidst a record that is of no transaction, and an undone transaction may come to it later.
	if (seen.position >= primary.position || showsAll(seen.snapshot, primary.snapshot)) return 0;
	return seen.replayed === null ? Number.POSITIVE_INFINITY : Math.max(0, primary.now - seen.replayed);
}

/** Whether all transactions that had ended on the primary have done so on the replica. */
function showsAll(seen: string, primary: string): boolean {
	const [here, there] = [seen, primary].map((text) => {
		const [, end = '0', open = ''] = text.split(':');
		return { end: Number(end), open: open.split(',').filter((xid) => xid !== '') };
	});
	if (here === undefined || there === undefined || here.end < there.end) return false;
	return here.open.every((xid) => Number(xid) >= there.end || there.open.includes(xid));
}

/** After the time for which one is waited for; sooner when it has everything. */
async function lagInAWhile(database: Database, primary: Look): Promise<Micros> {
	const began = performance.now();
	for (;;) {
		const lag = lagOf(await lookFrom(database), primary);
		const ms = lag > mostBehindMs * microsPerMs ? patienceMs.told : patienceMs.silent;
		if (lag === 0 || performance.now() - began > ms) return lag;
		await setTimeout(lookEveryMs);
	}
}

function lateText(lag: Micros): string {
	return Number.isFinite(lag)
		? `${Math.round(lag / microsPerSecond)} s behind`
		: 'behind for an unknown time';
}

/** The primary must answer. `why` null: nothing that a person should know. */
class Unfit extends Error {
	readonly why: string | null;
	/** How long it is left alone where `why` is null. */
	readonly restMs: number;

	constructor(why: string | null, restMs = 0) {
		super(why ?? '');
		this.why = why;
		this.restMs = restMs;
	}
}

/** `isHost`: it is a host of the URL too, and may be the primary. */
function assertFollows(seen: Look, primary: Look, isHost: boolean): void {
	if (seen.system !== primary.system) throw new Unfit('is one of another system');
	if (seen.follows === 0) throw new Unfit(isHost ? null : 'takes writes itself', rests.first);
}

async function lookFrom(database: Database): Promise<Look> {
	return await database.read(({ sql }) => lookAt(sql)).catch(failed);
}

/**
 * A replica cancels reads that are in the way of what it follows (40001, PostgreSQL 27.4.2), and one may have no
 * connection left: the next read is as good. What fails for another reason fails on the primary as well, and is told.
 */
function failed(error: unknown): never {
	if (!(error instanceof StoreError) || error.code === 'locked') throw new Unfit(null);
	const { cause } = error;
	throw new Unfit(`does not answer (${cause instanceof Error ? cause.message : error.message})`);
}
