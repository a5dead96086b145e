import { constants } from 'node:fs';
import { access, realpath, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { microsPerDay, microsPerSecond } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { oldestPostgres } from '../../store/maintenance.js';
import { shownDatabase } from '../../store/url.js';
import type { Inspected, InspectedFile, InspectedServer } from '../connect/inspect.js';
import { readOnlyHint } from '../frame/exit.js';
import { gibibyte, mebibyte, sizeText, spanText } from '../render/units.js';
import {
	type Answer,
	type Checks,
	ok,
	problem,
	type Run,
	type Surroundings,
	skipped,
	unopened,
	type Verdict,
	warning,
} from './checks.js';

/** A MiB takes a millisecond of CPU and, from a slow disk, ten; meanwhile SQLite hears no signal. */
const quickBytes = 128 * mebibyte;
/** SQLite keeps the log at 64 MiB once it was copied back. */
const longLogBytes = 256 * mebibyte;

type Found = Inspected | Error | null;

export function fileChecks(path: string, found: Found, around: Surroundings): Checks {
	const opened =
		(judge: (database: InspectedFile) => Answer | Promise<Answer>): Run =>
		() =>
			found !== null && 'bytes' in found ? judge(found) : unopened(found);
	return {
		'database.file': async () => {
			if (found === null)
				return skipped('the configuration, which may name another database, cannot be read');
			if (found instanceof Error) return judgeUnopened(path, found, around);
			const file = await realpath(path);
			for (const one of [file, dirname(file)])
				if (!(await isWritable(one))) return problem(`this user may not write to ${one}`, readOnlyHint);
			return ok(`${path}, ${sizeText('bytes' in found ? found.bytes.file : 0)}`);
		},
		'database.schema': opened(({ schema }) => judgeSchema(schema, around)),
		'database.sound': opened((database) => judgeSoundness(database, around)),
		'database.log': opened(judgeLog),
		'database.space': opened(async () => {
			const { bavail, blocks, bsize } = await statfs(dirname(await realpath(path)));
			return judgeSpace({ free: bavail * bsize, total: blocks * bsize });
		}),
		'database.clock': opened(({ contents }) => judgeClock(contents, around)),
	};
}

function isWritable(path: string): Promise<boolean> {
	return access(path, constants.W_OK).then(
		() => true,
		() => false,
	);
}

function judgeUnopened(path: string, error: Error, { line }: Surroundings): Verdict {
	if (error instanceof StoreError) return problem(error.message, fixes[error.code] ?? null);
	const words = ['engine', 'init', '--sender', 'ADDRESS', '--smtp', 'smtp://USER@HOST:587'];
	return problem(`no database at ${path}`, line(...words));
}

const freeSpace = 'free some space, or move the database';

const fixes: Readonly<Record<string, string>> = {
	read_only: readOnlyHint,
	locked: 'another process holds it: try again when that has ended',
	disk_full: freeSpace,
	io: 'check the disk, and the permissions of the file and its folder',
	denied: 'correct user, password or rights in the URL of --db or MAILCTL_DB',
	unreachable: 'check host, port and network, and whether the server runs',
	not_a_database: 'name another one with --db',
	bad_url: 'name another one with --db',
};

function judgeSchema({ found, known }: Inspected['schema'], { line }: Surroundings): Verdict {
	if (found === known) return ok(`schema ${found}, as this version has it`);
	if (found > known)
		return problem(`schema ${found} is newer than this version's ${known}`, 'upgrade mailctl');
	return warning(
		'it is empty: the next command that opens it brings it up to date',
		line('engine', 'status'),
	);
}

function judgeSoundness({ bytes, findDamage }: InspectedFile, { line, isFull }: Surroundings): Verdict {
	if (!isFull && bytes.file > quickBytes)
		return skipped(
			`${sizeText(bytes.file)} are read with --full only: ${line('doctor', '--only', 'database', '--full')}`,
		);
	// SQLite writes a heading and several sentences into one message.
	const said = findDamage(isFull ? 'whole' : 'quick').flatMap((one) => one.split('\n'));
	if (said.length === 0) return ok(isFull ? 'every page and every index is sound' : 'every page is sound');
	const [first = 'SQLite does not say where', ...more] = said.filter((one) => !one.startsWith('***'));
	const others = more.length === 0 ? '' : `, and ${more.length} more`;
	return problem(`the file is damaged: ${first}${others}`, line('engine', 'restore', 'BACKUP'));
}

export function judgeLog({
	journalMode,
	bytes,
	schema,
}: Pick<InspectedFile, 'journalMode' | 'bytes' | 'schema'>): Verdict {
	if (journalMode !== 'wal' && schema.found > 0)
		return warning(`its journal is "${journalMode}": the next command sets the write-ahead log again`);
	if (bytes.log > longLogBytes)
		return warning(
			`the write-ahead log beside it has grown to ${sizeText(bytes.log)}`,
			'end what uses the database: the last to close it copies the log back',
		);
	return ok(bytes.log === 0 ? 'write-ahead log, empty' : `write-ahead log of ${sizeText(bytes.log)}`);
}

/**
 * In bytes; `free` is the part a user other than root may fill. A tenth is little, but no more than 20 GiB: a tenth of a
 * large disk is enough for years.
 */
export function judgeSpace({ free, total }: { free: number; total: number }): Verdict {
	const says = `${sizeText(free)} of ${sizeText(total)} are free on its disk`;
	if (free < 100 * mebibyte) return problem(`${says}: writing fails soon`, freeSpace);
	const little = Math.max(gibibyte, Math.min(total / 10, 20 * gibibyte));
	return free < little ? warning(says, freeSpace) : ok(says);
}

const setClock = 'set the clock if it is wrong: timedatectl set-ntp true';

async function judgeClock(contents: Inspected['contents'], around: Surroundings): Promise<Verdict> {
	if (contents === null) return skipped('its schema is not the one of this version');
	const { now, moment } = around;
	const ahead = await judgeAhead("this machine's", contents);
	if (ahead !== null) return ahead;
	const step = await contents.clockStep();
	if (step !== null && Math.abs(now() - step.at) <= microsPerDay) {
		const how = `${step.by < 0 ? 'back' : 'forward'} by ${spanText(step.by)} at ${moment(step.at)}`;
		return warning(
			`this machine's clock was set ${how}: earlier records have times of the old clock`,
			setClock,
		);
	}
	const newest = await contents.newest();
	if (newest === null || newest <= now() + 300 * microsPerSecond)
		return ok(`this machine's clock says ${moment(now())}`);
	return problem(
		`something was recorded at ${moment(newest)}, ${spanText(newest - now())} ahead of this machine's clock`,
		setClock,
	);
}

/** The clock is ahead of the time that the database has seen pass, by which it deletes; null: it is not. */
async function judgeAhead(whose: string, contents: Inspected['contents']): Promise<Verdict | null> {
	const ahead = (await contents?.clockAhead()) ?? 0;
	if (ahead <= 0) return null;
	return warning(
		`${whose} clock is ${spanText(ahead)} ahead of when this database was last in use: nothing is deleted for its age before the clock has run for a day`,
		setClock,
	);
}

export function serverChecks(url: string, found: Found, around: Surroundings): Checks {
	const opened =
		(judge: (database: InspectedServer) => Answer | Promise<Answer>): Run =>
		() =>
			found !== null && 'server' in found ? judge(found) : unopened(found);
	return {
		'database.server': () => {
			const primary = 'name the primary with --db';
			if (found instanceof StoreError && found.code === 'read_only') return problem(found.message, primary);
			const path = shownDatabase(url);
			if (found instanceof Error && !(found instanceof StoreError))
				return problem(`no database at ${path}`, around.line('engine', 'init', '--db', path));
			return found instanceof Error ? judgeUnopened(path, found, around) : opened(judgeServer)();
		},
		'database.schema': opened(({ schema }) => judgeSchema(schema, around)),
		'database.durability': opened(judgeDurability),
		'database.connections': opened(({ server: { connections, mostConnections } }) => {
			const says = `${connections} of ${mostConnections} connections are in use`;
			return connections > 0.8 * mostConnections
				? warning(says, 'a smaller ?pool=, a pooler such as PgBouncer, or a larger max_connections')
				: ok(says);
		}),
		'database.clock': opened(async ({ contents, server: { ahead } }) => {
			const wrong = await judgeAhead("the server's", contents);
			if (wrong !== null) return wrong;
			if (Math.abs(ahead) <= 2 * microsPerSecond) return ok("the server's clock agrees with this machine's");
			return warning(
				`the server's clock is ${spanText(ahead)} ${ahead > 0 ? 'ahead of' : 'behind'} this machine's`,
				'synchronize both clocks with NTP: timedatectl set-ntp true',
			);
		}),
	};
}

function judgeServer({ server }: InspectedServer): Verdict {
	const { version, major, bytes, isReadOnly, isEncrypted } = server;
	const says = `PostgreSQL ${version}, ${sizeText(bytes)}, ${isEncrypted ? 'over TLS' : 'without TLS'}`;
	if (isReadOnly)
		return problem(`${says}: it is read-only, a replica or made so`, 'name the primary with --db');
	if (major < oldestPostgres)
		return problem(`${says}: mailctl needs ${oldestPostgres} or newer`, 'upgrade PostgreSQL');
	return ok(says);
}

function judgeDurability({ server }: InspectedServer): Verdict {
	const { synchronousCommit, standbys, replicas } = server;
	if (synchronousCommit === 'off')
		return problem(
			'synchronous_commit is off: acknowledged changes may be lost when the server fails',
			'ALTER DATABASE … RESET synchronous_commit',
		);
	if (replicas > 0 && (standbys === '' || synchronousCommit === 'local'))
		return warning(
			'commits do not wait for the replicas: a failover may lose the last',
			"set synchronous_standby_names = '*' and synchronous_commit = on",
		);
	return ok(`commits wait for the disk of the server${standbys === '' ? '' : ` and for ${standbys}`}`);
}
