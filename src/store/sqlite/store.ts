/** The store on SQLite, its core run in this thread. */
import { hostname } from 'node:os';
import type Database from 'better-sqlite3';
import { type Clock, microsPerMs } from '../../api/datetime.js';
import type { Queue } from '../queue.js';
import type { Store, Writes } from '../store.js';
import { pullForward } from './clock-steps.js';
import { type ConnectionOptions, openConnection } from './connection.js';
import { type Core, createCore } from './core.js';
import { sqliteCode, translateFailure } from './failures.js';
import { createImportLine, type ImportLine } from './import-line.js';
import { migrate } from './migrations.js';
import { beat, endBeat, findOthers, heartbeatEveryMicros, type ProcessIdentity } from './processes.js';
import { createReads } from './reads.js';
import { reclaimLeases } from './reclaim.js';
import {
	addInSlices,
	cancelInSlices,
	createSliceSize,
	leaseInSlices,
	putSettingsInSlices,
} from './slices.js';
import { createSql } from './sql.js';
import { startUpkeep } from './upkeep.js';
import { createWriter, type Writer } from './writer.js';

export interface SqliteOptions {
	path: string;
	clock: Clock;
	mode: ConnectionOptions['mode'];
	/** How this process calls itself to others: `serve`, `worker`, `cli`. */
	role: string;
	/** Names this opening among all processes; unique. */
	processId: string;
	lockTimeoutMs: number;
	/** How long opens and clicks may wait for company in their commit. */
	eventDelayMs: number;
	/** See `OpenOptions`. */
	upkeep: 'apart' | 'with_commits';
}

/** SQLite's own wait for a lock is a synchronous sleep: short, and tried again with a pause for everybody else. */
const busyTimeoutMs = 10;
/**
 * Alone, groups may be large and the log long, which bulk loads gain from. Beside others everybody gets a turn, and
 * whoever writes much copies the log back himself, after letting the lock go: found in a request's commit, it made
 * that wait half a second. In a server, what is large is cut for the sake of its own requests too. Not smaller than
 * needed: rows of an import lie on pages of their own, and each commit writes those pages whole.
 */
const paces = {
	alone: { maxGroupMs: 2_000, maxSliceMs: 2_000, pauseMs: 0, logPages: 50_000 },
	besideOthers: { maxGroupMs: 100, maxSliceMs: 200, pauseMs: 15, logPages: 12_500 },
	server: { maxGroupMs: 100, maxSliceMs: 200, pauseMs: 0, logPages: 0 },
	serverBesideOthers: { maxGroupMs: 100, maxSliceMs: 200, pauseMs: 15, logPages: 0 },
};

/** The log of a busy server grows by some 10 MiB meanwhile. */
const upkeepEveryMs = 1_000;

/** Throws `DatabaseMissing` and `StoreError`. */
export function openSqliteStore(options: SqliteOptions): Store {
	const { path, clock } = options;
	// The switch to the log and a migration have no second try: they may sleep for the lock.
	const db = openConnection({
		path,
		mode: options.mode,
		role: 'writer',
		busyTimeoutMs: options.lockTimeoutMs,
	});
	const me: ProcessIdentity = {
		id: options.processId,
		role: options.role,
		host: hostname(),
		pid: process.pid,
	};
	try {
		migrate(db, { path, me, now: clock.now() });
		db.pragma(`busy_timeout = ${busyTimeoutMs}`);
	} catch (error) {
		db.close();
		throw translateFailure(error, path);
	}
	const sql = createSql(db);
	const core = createCore(sql);
	let lastBeat = 0;
	const isServer = options.upkeep === 'apart';
	const [freePace, sharedPace] = isServer
		? [paces.server, paces.serverBesideOthers]
		: [paces.alone, paces.besideOthers];
	let pace = freePace;
	const heartbeat = () => {
		const now = clock.now();
		if (Math.abs(now - lastBeat) < heartbeatEveryMicros) return;
		if (now < lastBeat) pullForward(sql, { host: me.host, now });
		beat(sql, me, now);
		pace = findOthers(sql, me, now).length > 0 ? sharedPace : freePace;
		db.pragma(`wal_autocheckpoint = ${pace.logPages}`);
		lastBeat = now;
	};
	const writer = createWriter({
		db,
		path,
		lockTimeoutMs: options.lockTimeoutMs,
		pace: () => pace,
		beforeGroup: heartbeat,
		afterLongGroup: () => copyLogBack(db),
		random: Math.random,
	});
	// A command's heartbeats come with what it writes; whoever stays must be heard of when idle too.
	const timer =
		options.role === 'cli'
			? null
			: setInterval(() => {
					writer.write(() => undefined).catch(() => undefined);
				}, heartbeatEveryMicros / microsPerMs).unref();
	const upkeep = isServer ? startUpkeep({ db, sql, writer, clock, everyMs: upkeepEveryMs }) : null;
	const importLine = createImportLine(
		core,
		writer,
		createSliceSize(() => pace.maxSliceMs),
	);
	const reclaim = () => {
		const free = () => {
			const now = clock.now();
			reclaimLeases(sql, { host: me.host, now });
			// It may have been set back while nobody was here.
			pullForward(sql, { host: me.host, now });
		};
		writer.write(free).catch(() => undefined);
	};
	if (options.role !== 'cli') reclaim();
	let isClosed = false;
	return {
		reads: createReads({ db, path, core }),
		writes: createWrites({ core, writer, importLine, eventDelayMs: options.eventDelayMs }),
		queue:
			options.role === 'cli' ? reclaiming(createQueue(core, writer), reclaim) : createQueue(core, writer),
		close: async () => {
			if (isClosed) return;
			isClosed = true;
			if (timer !== null) clearInterval(timer);
			upkeep?.stop();
			if (lastBeat !== 0) await writer.write(() => endBeat(sql, me)).catch(() => undefined);
			await writer.close();
			db.close();
		},
	};
}

/** A command that sends frees what a killed one held, before its own first lease: writes keep their order. */
function reclaiming(queue: Queue, reclaim: () => void): Queue {
	let isDone = false;
	return {
		...queue,
		lease: (command) => {
			if (!isDone) reclaim();
			isDone = true;
			return queue.lease(command);
		},
	};
}

// It loses nothing when it fails: the log stays, and the next commit meets the same disk.
function copyLogBack(db: Database.Database): void {
	try {
		db.pragma('wal_checkpoint(PASSIVE)');
	} catch (error) {
		if (sqliteCode(error) === null) throw error;
	}
}

interface WriteParts {
	core: Core;
	writer: Writer;
	importLine: ImportLine;
	eventDelayMs: number;
}

function createWrites({ core, writer, importLine, eventDelayMs }: WriteParts): Writes {
	const write =
		<C, R>(operation: (command: C) => R) =>
		(command: C): Promise<R> =>
			writer.write(() => operation(command));
	return {
		createList: write(core.createList),
		patchList: write(core.patchList),
		deleteList: write(core.deleteList),
		clearList: write(core.clearList),
		createSubscriber: write(core.createSubscriber),
		patchSubscriber: write(core.patchSubscriber),
		deleteSubscriber: write(core.deleteSubscriber),
		erasePerson: write(core.erasePerson),
		liftErasure: write(core.liftErasure),
		putSuppressions: write(core.putSuppressions),
		removeSuppressions: write(core.removeSuppressions),
		createField: write(core.createField),
		patchField: write(core.patchField),
		deleteField: write(core.deleteField),
		createWebhook: write(core.createWebhook),
		patchWebhook: write(core.patchWebhook),
		deleteWebhook: write(core.deleteWebhook),
		leaseDeliveries: write(core.leaseDeliveries),
		settleDeliveries: write(core.settleDeliveries),
		replayDeliveries: write(core.replayDeliveries),
		ensureWebhookSecret: write(core.ensureWebhookSecret),
		rotateWebhookSecret: write(core.rotateWebhookSecret),
		createTemplate: write(core.createTemplate),
		patchTemplate: write(core.patchTemplate),
		deleteTemplate: write(core.deleteTemplate),
		createSender: write(core.createSender),
		deleteSender: write(core.deleteSender),
		putSettings: (command) => putSettingsInSlices(core, writer, command),
		ensureKey: write(core.ensureKey),
		createToken: write(core.createToken),
		revokeToken: write(core.revokeToken),
		addDkimKey: write(core.addDkimKey),
		removeDkimKey: write(core.removeDkimKey),
		acceptSubmission: write(core.acceptSubmission),
		openMailing: write(core.openMailing),
		addListToMailing: (command) => addInSlices(core, writer, command),
		putMailingBatch: write(core.putMailingBatch),
		completeMailing: write(core.completeMailing),
		releaseMailing: write(core.releaseMailing),
		cancelMailing: (command) => cancelInSlices(core, writer, command),
		openImport: write(core.openImport),
		putImportBatch: importLine.put,
		finishImport: write(core.finishImport),
		changeMessage: write(core.changeMessage),
		recordReport: write(core.recordReport),
		recordEvents: (command) => {
			// Who unsubscribes waits for the answer, and must not get another mail meanwhile.
			const isUrgent = command.events.some(({ type }) => type !== 'OPENED' && type !== 'REDIRECTED');
			return writer.write(() => core.recordEvents(command), { maxDelayMs: isUrgent ? 0 : eventDelayMs });
		},
	};
}

function createQueue(core: Core, writer: Writer): Queue {
	return {
		lease: (command) => leaseInSlices(core, writer, command),
		renew: (command) => writer.write(() => core.renew(command)),
		settle: (command) => writer.write(() => core.settle(command)),
		pause: (command) => writer.write(() => core.pause(command)),
		resume: (command) => writer.write(() => core.resume(command)),
	};
}
