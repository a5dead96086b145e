import { closeSync, existsSync, openSync, readSync, realpathSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type Clock, formatDateTime, type Micros } from '../../api/datetime.js';
import { codeOf, StoreError } from '../../api/errors.js';
import { DatabaseMissing } from '../../store/errors.js';
import { newerSchema } from '../../store/migrations.js';
import { DatabaseMarked } from '../../store/moving.js';
import { backUpStore, databaseFile, inspectStore, openStore } from '../../store/open.js';
import {
	assertAlone,
	type BackedUp,
	closeLog,
	forgetProcesses,
	isInUse,
	type OutOfUse,
	removeSecondNames,
	takeOutOfUse,
} from '../../store/sqlite/backup.js';
import { makeFolder } from '../../store/sqlite/connection.js';
import { TableError } from '../../tables/finding.js';
import { createOutputFile, type WhenThere } from '../../tables/output-file.js';
import type { OtherProcess } from '../frame/connection.js';
import { CliError, UsageError } from '../frame/errors.js';
import { exits } from '../frame/exit.js';
import { readWrappingKeys } from './wrapping-keys.js';

interface BackupRequest {
	database: string;
	file: string;
	whenThere: WhenThere;
	signal: AbortSignal;
	onProgress: (copied: { pages: number; of: number }) => void;
	onRemoved: (name: string) => Promise<void>;
}

export async function backUp({
	database,
	file,
	whenThere,
	onRemoved,
	...rest
}: BackupRequest): Promise<BackedUp> {
	const output = await createOutputFile(file, whenThere, 'backup.part');
	try {
		for await (const name of removeLeftovers(resolve(output.path))) await onRemoved(name);
		const made = await backUpStore(database, { into: resolve(output.path), name: file, ...rest });
		await output.finish();
		return made;
	} finally {
		await output.discard();
	}
}

const leftoverMs = 3_600_000;

/**
 * Removes temporary files of killed backups and restores from the folder of `own`, and yields their names. Skips locked
 * and recent files, which a running backup may use. Takes the current time from the new file `own`, because the clock
 * of a file server may differ.
 */
async function* removeLeftovers(own: string): AsyncGenerator<string> {
	const { mtimeMs: nowMs } = await stat(own);
	const folder = dirname(own);
	const names = await readdir(folder).catch(() => []);
	for (const name of names.filter((one) => /^\..*\.[0-9a-f]{12}\.backup\.part$/s.test(one))) {
		const path = join(folder, name);
		const mtimeMs = await stat(path).then(
			(found) => (found.isFile() ? found.mtimeMs : nowMs),
			() => nowMs,
		);
		if (name === basename(own) || nowMs - mtimeMs <= leftoverMs || isInUse(path)) continue;
		for (const suffix of ['-journal', '-wal', '-shm', '']) await rm(path + suffix, { force: true });
		yield name;
	}
}

interface RestorePlan {
	place: string;
	/** Null if the database is missing. `usedBy`: processes that have it open. `newest`: time of the newest record. */
	old: { state: 'sound' | 'damaged'; usedBy: readonly OtherProcess[]; newest: string | null } | null;
	newest: string | null;
}

const keptSuffix = '.before-restore-';

/**
 * Changes nothing. Throws `UsageError`, `UnsupportedDatabase`, or `StoreError` for a file that is not a usable backup.
 */
export function planRestore(url: string, file: string, clock: Clock): RestorePlan {
	const place = realPlace(databaseFile(url));
	if (place === realPlace(resolve(file))) throw new UsageError(`${file} is the database itself`);
	const backup = readable(file, () => inspectStore(file));
	try {
		const { found, known } = backup.schema;
		if (found === 0) throw new StoreError('not_a_database', `${file} is empty: it is not a backup`);
		if (found > known) throw newerSchema(file, found, known);
		const foreign = readable(file, () => backup.findForeign());
		if (foreign !== null)
			throw new StoreError('not_a_database', `${file} is not a backup of mailctl: it has ${foreign}`);
		return { place, old: oldAt(place, clock), newest: textOf(backup.newest('records')) };
	} finally {
		backup.close();
	}
}

export function assertSound(file: string): void {
	const backup = readable(file, () => inspectStore(file));
	try {
		const [damage] = readable(file, () => backup.findDamage('whole'));
		if (damage !== undefined) throw damagedBackup(file, damage);
	} finally {
		backup.close();
	}
}

export function assertNotOpen({ place, old }: RestorePlan): void {
	if (old?.state === 'sound') assertAlone(place);
}

function readable<T>(file: string, read: () => T): T {
	try {
		return read();
	} catch (error) {
		if (!(error instanceof StoreError) || error.code !== 'damaged') throw error;
		throw damagedBackup(file, error.cause instanceof Error ? error.cause.message : error.message);
	}
}

function damagedBackup(file: string, damage: string): CliError {
	const words = damage.replaceAll(/\s+/g, ' ').trim();
	return new CliError(
		'damaged',
		exits.disk,
		`${file}: this backup is damaged, and nothing was changed (${words})`,
		{ hint: 'use another backup' },
	);
}

function oldAt(place: string, clock: Clock): RestorePlan['old'] {
	try {
		const old = inspectStore(place);
		try {
			const { found, known } = old.schema;
			const newest = found === known ? textOf(old.newest('records')) : null;
			return { state: 'sound', usedBy: old.usedBy(clock.now()), newest };
		} finally {
			old.close();
		}
	} catch (error) {
		if (error instanceof DatabaseMissing) return null;
		if (error instanceof DatabaseMarked) throw new DatabaseMarked(place, error.mark, 'place');
		if (!isDamaged(error)) throw error;
		if (isOther(place))
			throw new StoreError(
				'not_a_database',
				`${place} is not a database: move it away, or name another file with --db`,
			);
		return { state: 'damaged', usedBy: [], newest: null };
	}
}

function isOther(place: string): boolean {
	if (['-wal', '-journal'].some((suffix) => existsSync(place + suffix))) return false;
	const fd = openSync(place, 'r');
	try {
		const head = Buffer.alloc(16);
		return readSync(fd, head) > 0 && head.toString('latin1') !== 'SQLite format 3\0';
	} finally {
		closeSync(fd);
	}
}

/** A database of another program does not count as damaged. */
function isDamaged(error: unknown): boolean {
	const causes = error instanceof Error ? [error, error.cause] : [];
	return causes.some((one) => /^SQLITE_(NOTADB|CORRUPT)/.test(codeOf(one)));
}

interface RestoreRequest extends Pick<BackupRequest, 'signal' | 'onProgress' | 'onRemoved'> {
	plan: RestorePlan;
	file: string;
	clock: Clock;
	env: Readonly<Record<string, string | undefined>>;
	warn: (text: string) => void;
}

interface Restored extends BackedUp {
	kept: string | null;
	uncertain: number;
	waiting: number;
	erased: number | null;
}

/**
 * Replaces the database atomically. Throws `UsageError`, `StoreError` and errors of the disk; then nothing has changed.
 */
export async function restore(request: RestoreRequest): Promise<Restored> {
	const { plan, file, clock, onRemoved } = request;
	const { place } = plan;
	makeFolder(dirname(place));
	await removeSecondNames(place, keptSuffix);
	const taken = takeOutOfUse(place, plan.old?.state ?? 'missing');
	const output = await createOutputFile(place, plan.old === null ? 'refuse' : 'replace', 'backup.part').catch(
		(error: unknown) => {
			taken.release();
			throw appeared(error, place);
		},
	);
	try {
		for await (const name of removeLeftovers(output.path)) await onRemoved(name);
		const copied = await backUpStore(file, { ...request, into: output.path, name: place }).catch(
			(error: unknown) => {
				if (error instanceof StoreError) assertSound(file);
				throw error;
			},
		);
		const settled = await settle(output.path, request, taken);
		const kept = keptName(place, clock.now());
		taken.keepAs(kept);
		try {
			await output.finish();
		} catch (error) {
			taken.giveUp();
			throw appeared(error, place);
		}
		return { kept: existsSync(kept) ? kept : null, ...copied, ...settled };
	} finally {
		await output.discard();
		taken.release();
	}
}

function appeared(error: unknown, place: string): unknown {
	if (!(error instanceof TableError) || error.code !== 'file_exists') return error;
	return new UsageError(`another process created ${place} during the restore`, {
		hint: 'run the command again: mailctl then keeps the file under another name',
		cause: error,
	});
}

async function settle(
	copy: string,
	{ plan, file, clock, env, warn }: RestoreRequest,
	original: Pick<OutOfUse, 'erasures'>,
): Promise<Pick<Restored, 'subscribers' | 'uncertain' | 'waiting' | 'erased'>> {
	const keys = readWrappingKeys(env, warn);
	forgetProcesses(copy, plan.place);
	const store = await openStore(copy, { clock, mode: 'existing', keys });
	const of = plan.newest === null ? '' : ` of ${plan.newest.slice(0, 16).replace('T', ' ')} UTC`;
	const backup = `${file}${of}`;
	const settleAll = async () => {
		const erasures = original.erasures(keys);
		const { erased, ...settled } = await store.writes.settleRestored({ backup, erasures, now: clock.now() });
		const { subscribers } = await store.reads.status();
		return { subscribers, ...settled, erased: erasures === null ? null : erased };
	};
	const settled = await settleAll().finally(() => store.close());
	closeLog(copy, plan.place);
	return settled;
}

function keptName(place: string, now: Micros): string {
	const stamp = formatDateTime(now).slice(0, 19).replaceAll(/[-:]/g, '');
	const name = `${place}${keptSuffix}${stamp}Z`;
	for (let at = 1; ; at += 1) {
		const free = at === 1 ? name : `${name}-${at}`;
		if (['', '-wal', '-journal', '-shm'].every((suffix) => !existsSync(free + suffix))) return free;
	}
}

function textOf(at: Micros | null): string | null {
	return at === null ? null : formatDateTime(at);
}

function realPlace(path: string): string {
	return existsSync(path) ? realpathSync(path) : path;
}
