import { constants, existsSync, realpathSync } from 'node:fs';
import { access, realpath, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { microsPerSecond } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { DatabaseMissing } from '../../store/errors.js';
import { oldestPostgres } from '../../store/maintenance.js';
import { isPostgres, shownDatabase } from '../../store/url.js';
import { readConfig } from '../config/config.js';
import type { Contents, Inspected, InspectedFile, InspectedServer } from '../connect/inspect.js';
import type { CommandContext } from '../frame/context.js';
import { classify, readOnlyHint } from '../frame/exit.js';
import { gibibyte, mebibyte, sizeText, spanText } from '../render/units.js';
import type { Checks, Surroundings, Verdict } from './checks.js';
import { firstError, ok, problem, Skip, warning } from './checks.js';
import { createNames, dnsChecks } from './dns.js';
import { judgeClock, machineChecks, setClock } from './machine.js';
import { type Database, queueChecks, sendingChecks } from './sending.js';

export async function localChecks(
	cx: CommandContext,
	url: string,
	around: Surroundings,
	nameServer: string | undefined,
): Promise<{ checks: Checks; close(): Promise<void> }> {
	const names = createNames(nameServer);
	const isOnServer = isPostgres(url);
	// List the files before opening the database, because an open database has more files.
	const files = isOnServer ? [] : databaseFiles(url);
	const keys = await readKeys(cx);
	const { inspect } = await import('../connect/inspect.js');
	const found = isNamed(cx)
		? await inspect(url, { clock: cx.clock, trace: cx.trace, keys: keys.given }).catch((error: unknown) => {
				if (error instanceof StoreError || error instanceof DatabaseMissing) return error;
				throw error;
			})
		: null;
	const opened = found instanceof Error ? null : found;
	const database: Database = {
		...around,
		contents: () => {
			if (opened === null) throw new Skip('the database is not open');
			if (opened.contents === null) throw new Skip('the schema of the database does not match this mailctl');
			return opened.contents;
		},
	};
	const keyFile = cx.io.env['MAILCTL_KEY_FILE'];
	const secrets = [
		...(opened === null ? [] : files),
		...(isOnServer ? [] : [`${url}.token`]),
		...(keyFile ? [keyFile] : []),
	];
	const folder = opened === null || isOnServer ? null : dirname(files[0] ?? url);
	return {
		checks: {
			...machineChecks(cx.paths, secrets, folder),
			...(isOnServer ? serverChecks : fileChecks)(url, found, database),
			...sendingChecks(database, keys),
			...queueChecks(database),
			...dnsChecks(database, names),
		},
		close: async () => {
			names.close();
			await opened?.close();
		},
	};
}

/** An unreadable configuration may name a database other than the default one. */
function isNamed({ settings, paths }: CommandContext): boolean {
	if (settings.target.origin.level !== 'default') return true;
	try {
		readConfig(paths);
		return true;
	} catch {
		return false;
	}
}

async function readKeys({ io }: CommandContext) {
	const { readWrappingKeys } = await import('../connect/wrapping-keys.js');
	try {
		return { given: readWrappingKeys(io.env), problem: null };
	} catch (error) {
		return { given: [], problem: firstError(error) };
	}
}

/** SQLite follows links and keeps companions beside the real file. */
function databaseFiles(path: string): string[] {
	if (!existsSync(path)) return [];
	const file = realpathSync(path);
	return ['', '-wal', '-shm', '-journal'].map((suffix) => file + suffix).filter((one) => existsSync(one));
}

/** A quick check takes 1 ms of CPU per MiB, or 10 ms from a slow disk, and blocks signal handlers meanwhile. */
const quickBytes = 128 * mebibyte;
/** Normal logs are smaller, because SQLite shortens the log to 64 MiB after a checkpoint. */
const longLogBytes = 256 * mebibyte;

/**
 * `Error`: why the database could not be opened. Null: the configuration, which may name the database, is unreadable.
 */
type Found = Inspected | Error | null;

function fileChecks(path: string, found: Found, { contents, ...around }: Database): Checks {
	const opened = (): InspectedFile => {
		if (found !== null && 'bytes' in found) return found;
		throw new Skip('the database is not open');
	};
	return {
		'database.file': async () => {
			if (found === null)
				throw new Skip('the configuration, which may name another database, cannot be read');
			if (found instanceof Error) return judgeUnopened(path, found, around);
			const file = await realpath(path);
			for (const one of [file, dirname(file)]) {
				const refusal = await access(one, constants.W_OK).catch(String);
				if (refusal) return problem(`this user may not write to ${one}`, readOnlyHint);
			}
			return ok(`${path}, ${sizeText(opened().bytes.file)}`);
		},
		'database.schema': () => judgeSchema(opened().schema, around),
		'database.sound': () => judgeSoundness(opened(), around),
		'database.log': () => {
			const { log } = opened().bytes;
			const says = `the write-ahead log has a size of ${sizeText(log)}`;
			if (log <= longLogBytes) return ok(says);
			return warning(says, 'to shorten the log, end all processes that use the database');
		},
		'database.space': async () => {
			opened();
			const { bavail, blocks, bsize } = await statfs(dirname(await realpath(path)));
			return judgeSpace({ free: bavail * bsize, total: blocks * bsize });
		},
		'database.clock': async () => {
			const { now, moment } = around;
			const ahead = await judgeAhead("this machine's", contents());
			if (ahead !== null) return ahead;
			const newest = await contents().newest();
			const says = `this machine's clock shows ${moment(now())}`;
			if (newest === null || newest <= now() + 300 * microsPerSecond) return ok(says);
			return problem(`${says}, but the newest record is from ${moment(newest)}`, setClock);
		},
	};
}

function serverChecks(url: string, found: Found, { contents, ...around }: Database): Checks {
	const opened = (): InspectedServer => {
		if (found !== null && 'server' in found) return found;
		throw new Skip('the database is not open');
	};
	return {
		'database.server': () => {
			if (found instanceof Error) return judgeUnopened(shownDatabase(url), found, around);
			const { version, major, bytes, isReadOnly, isEncrypted } = opened().server;
			const says = `PostgreSQL ${version}, ${sizeText(bytes)}, ${isEncrypted ? 'with' : 'without'} TLS`;
			if (isReadOnly) return problem(`${says}: it is read-only`, 'name the primary server with --db');
			if (major < oldestPostgres)
				return problem(`${says}: mailctl needs ${oldestPostgres} or newer`, 'upgrade PostgreSQL');
			return ok(says);
		},
		'database.schema': () => judgeSchema(opened().schema, around),
		'database.durability': () => {
			const { synchronousCommit, standbys, replicas } = opened().server;
			if (synchronousCommit === 'off')
				return problem(
					'synchronous_commit is off: a crash of the server loses accepted changes',
					'ALTER DATABASE … RESET synchronous_commit',
				);
			if (replicas > 0 && (standbys === '' || synchronousCommit === 'local'))
				return warning(
					'commits do not wait for the replicas: a failover may lose the latest commits',
					"set synchronous_standby_names = '*' and synchronous_commit = on",
				);
			return ok(`commits wait for the disk of the server${standbys === '' ? '' : ` and for ${standbys}`}`);
		},
		'database.connections': () => {
			const { connections, mostConnections } = opened().server;
			const says = `${connections} of ${mostConnections} connections are in use`;
			if (connections <= 0.8 * mostConnections) return ok(says);
			return warning(says, 'set a smaller ?pool=, use PgBouncer, or raise max_connections');
		},
		'database.clock': async () => {
			const { ahead } = opened().server;
			const wrong = await judgeAhead("the server's", contents());
			return wrong ?? judgeClock("the server's", ahead, 2 * microsPerSecond);
		},
	};
}

function judgeUnopened(path: string, error: Error, { line, text }: Surroundings): Verdict {
	if (error instanceof DatabaseMissing) {
		const words = ['engine', 'init', '--sender', 'ADDRESS', '--smtp', 'smtp://USER@HOST:587'];
		return problem(`no database at ${path}`, line(...words));
	}
	const { message, hint } = classify(error);
	return problem(message, hint === null ? null : text(hint));
}

function judgeSchema({ found, known }: Inspected['schema'], { line }: Surroundings): Verdict {
	if (found === known) return ok(`version ${found} of the schema, which is current`);
	const newer = `the schema has version ${found}, but this mailctl knows only versions up to ${known}`;
	if (found > known) return problem(newer, 'upgrade mailctl');
	return warning('the database is empty: the next command sets it up', line('engine', 'status'));
}

function judgeSoundness({ bytes, findDamage }: InspectedFile, { isFull, line }: Surroundings): Verdict {
	const restore = line('engine', 'restore', 'BACKUP');
	if (!isFull && bytes.file > quickBytes)
		throw new Skip(`the file is large (${sizeText(bytes.file)}): ${line('doctor', '--full')} checks it`);
	let said: string[];
	try {
		// One message of SQLite may have a heading and several lines.
		said = findDamage(isFull ? 'whole' : 'quick').flatMap((one) => one.split('\n'));
	} catch (error) {
		if (!(error instanceof StoreError)) throw error;
		const check = 'check the disk (dmesg, smartctl): the file may be sound';
		if (error.code !== 'damaged') return problem('the disk cannot read the file', check);
		// If the disk cannot read a page, SQLite may report damage.
		return problem('the file seems damaged', `if dmesg shows no disk error: ${restore}`);
	}
	if (said.length === 0) return ok(`no damage found${isFull ? ', indexes included' : ''}`);
	const [first = 'SQLite does not say which part', ...more] = said.filter((one) => !one.startsWith('***'));
	const others = more.length === 0 ? '' : `, and ${more.length} more`;
	return problem(`the file is damaged: ${first}${others}`, restore);
}

/** Never warns while 20 GiB or more are free, because a database takes years to fill that space. */
export function judgeSpace({ free, total }: { free: number; total: number }): Verdict {
	const says = `${sizeText(free)} of ${sizeText(total)} are free on the disk of the database`;
	const fix = 'free some space, or move the database';
	if (free < 100 * mebibyte) return problem(`${says}: writing will soon fail`, fix);
	return free < Math.max(gibibyte, Math.min(total / 10, 20 * gibibyte)) ? warning(says, fix) : ok(says);
}

async function judgeAhead(whose: string, contents: Contents): Promise<Verdict | null> {
	const ahead = await contents.clockAhead();
	if (ahead <= 0) return null;
	const says = `${whose} clock is ${spanText(ahead)} ahead of the last time that this database recorded`;
	return warning(`${says}, so mailctl does not delete expired data yet`, setClock);
}
