/** The database: a file (there, ours, current, sound, with room to grow), or one on a server of PostgreSQL. */
import { constants } from 'node:fs';
import { access, realpath, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import { oldestPostgres } from '../../store/maintenance.js';
import { readOnlyHint } from '../frame/exit.js';
import { momentText } from '../render/times.js';
import { gibibyte, mebibyte, sizeText, spanText } from '../render/units.js';
import {
	type Answer,
	type Check,
	ok,
	problem,
	type Surroundings,
	skipped,
	type Verdict,
	warning,
} from './checks.js';
import {
	type Inspected,
	type InspectedDatabase,
	type InspectedServer,
	noContents,
	type OfContents,
} from './inspection.js';

/**
 * A MiB takes a millisecond of CPU and, from a slow disk, ten; meanwhile SQLite hears no signal. Larger files are read
 * only when asked for.
 */
const quickBytes = 128 * mebibyte;
/** SQLite keeps the log at 64 MiB once it was copied back. */
const longLogBytes = 256 * mebibyte;

/** `database.…` of a file; all but the first are skipped where it cannot be opened. */
export function fileChecks(found: Inspected, of: OfContents, around: Surroundings): Check[] {
	const opened = (judge: (database: InspectedDatabase) => Answer | Promise<Answer>) => () =>
		found.kind === 'open' ? judge(found.database) : noContents(found);
	return [
		{ name: 'database.file', run: () => judgeFile(found, around) },
		{ name: 'database.schema', run: opened(({ schema }) => judgeSchema(schema, around)) },
		{ name: 'database.sound', run: opened((database) => judgeSoundness(database, around)) },
		{ name: 'database.log', run: opened(judgeLog) },
		{
			name: 'database.space',
			run: opened(async () => {
				const { bavail, blocks, bsize } = await statfs(dirname(await realpath(found.path)));
				return judgeSpace({ free: bavail * bsize, total: blocks * bsize });
			}),
		},
		{
			name: 'database.clock',
			run: of(async (contents) => {
				const wrong = setClock("this machine's", await contents.clockAhead(), {
					step: await contents.clockStep(),
					...around,
				});
				return wrong ?? judgeClock(await contents.newest(), around);
			}),
		},
	];
}

async function judgeFile(found: Inspected, { line }: Surroundings): Promise<Verdict> {
	switch (found.kind) {
		case 'server':
			return skipped('it is on a server');
		case 'unnamed':
			return skipped('the configuration, which may name another database, cannot be read');
		case 'missing':
			return problem(
				`there is no database at ${found.path}`,
				line('engine', 'init', '--sender', 'ADDRESS', '--smtp', 'smtp://USER@HOST:587'),
			);
		case 'closed':
			return problem(found.message, closedFixes[found.code] ?? null);
		case 'open': {
			const locked = await findReadOnly(found.path);
			return locked === null
				? ok(`${found.path}, ${sizeText(found.database.bytes.file)}`)
				: problem(`this user may not write to ${locked}`, readOnlyHint);
		}
	}
}

/** The file, or the folder that takes its log; null: both can be written to. */
async function findReadOnly(path: string): Promise<string | null> {
	const file = await realpath(path);
	for (const one of [file, dirname(file)]) {
		const isOpen = await access(one, constants.W_OK).then(
			() => true,
			() => false,
		);
		if (!isOpen) return one;
	}
	return null;
}

const closedFixes: Readonly<Record<string, string>> = {
	read_only: readOnlyHint,
	locked: 'another process holds it: try again when that has ended',
	disk_full: 'free some space, or move the database',
	io: 'look at the permissions of the file and its folder, and at the disk',
	denied: 'correct user, password or rights; the URL stands in --db or MAILCTL_DB',
	unreachable: 'look at host and port, at the network, and whether the server runs',
	not_a_database: 'name another one with --db',
	bad_url: 'name another one with --db',
};

/** `found` 0: an empty database. */
function judgeSchema({ found, known }: InspectedDatabase['schema'], { line }: Surroundings): Verdict {
	if (found === known) return ok(`schema ${found}, as this version has it`);
	if (found > known)
		return problem(`schema ${found} is newer than this version's ${known}`, 'upgrade mailctl');
	return warning(
		'nothing has been stored in it yet: the next command that opens it brings it up to date',
		line('engine', 'status'),
	);
}

function judgeSoundness(
	{ bytes, findDamage }: InspectedDatabase,
	{ line, isFull }: Pick<Surroundings, 'line' | 'isFull'>,
): Verdict {
	if (!isFull && bytes.file > quickBytes)
		return skipped(
			`${sizeText(bytes.file)} are read with --full only: ${line('doctor', '--only', 'database', '--full')}`,
		);
	let damage: string[];
	try {
		damage = findDamage(isFull ? 'whole' : 'quick');
	} catch (error) {
		const why = error instanceof Error ? error.message : String(error);
		return problem(why, 'look at the disk (dmesg, smartctl) before anything is restored');
	}
	if (damage.length === 0) return ok(isFull ? 'every page and every index is sound' : 'every page is sound');
	// SQLite writes a heading and several sentences into one message.
	const said = damage.flatMap((one) => one.split('\n')).filter((one) => !one.startsWith('***'));
	const [first = 'SQLite does not say where', ...more] = said;
	const others = more.length === 0 ? '' : `, and ${more.length} more`;
	return problem(`the file is damaged: ${first}${others}`, line('engine', 'restore', 'BACKUP'));
}

/** The write-ahead log is written in the journal mode `wal` alone. */
export function judgeLog({
	journalMode,
	bytes,
	schema,
}: Pick<InspectedDatabase, 'journalMode' | 'bytes' | 'schema'>): Verdict {
	if (journalMode !== 'wal' && schema.found > 0)
		return warning(
			`its journal is "${journalMode}", not the write-ahead log: the next command that opens it changes that back`,
		);
	if (bytes.log > longLogBytes)
		return warning(
			`the write-ahead log beside it has grown to ${sizeText(bytes.log)}: a program has read for very long, or was killed`,
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
	const fix = 'free some space, or move the database';
	if (free < 100 * mebibyte) return problem(`${says}: writing fails soon`, fix);
	const little = Math.max(gibibyte, Math.min(total / 10, 20 * gibibyte));
	return free < little ? warning(says, fix) : ok(says);
}

/**
 * Null: the clock was not set lately. `ahead`: of the time that the database has seen pass, by which it deletes. `step`:
 * records made before it keep their times.
 */
function setClock(
	whose: string,
	ahead: Micros,
	{ step, clock, zone }: Pick<Surroundings, 'clock' | 'zone'> & { step: { by: Micros; at: Micros } | null },
): Verdict | null {
	const fix = 'set the clock if it is wrong: timedatectl set-ntp true';
	if (ahead > 0)
		return warning(
			`${whose} clock is ${spanText(ahead)} ahead of when this database was last in use: nothing is deleted for its age before the clock has run for a day`,
			fix,
		);
	if (step === null || Math.abs(clock.now() - step.at) > microsPerDay) return null;
	const how = `${step.by < 0 ? 'back' : 'forward'} by ${spanText(step.by)} at ${momentText(step.at, zone)}`;
	return warning(
		`${whose} clock was set ${how}: what was recorded before has times of the clock before`,
		fix,
	);
}

/** `newest`: when something was recorded last; null: never. */
function judgeClock(newest: Micros | null, { clock, zone }: Surroundings): Verdict {
	const now = clock.now();
	if (newest === null || newest <= now + 300 * microsPerSecond)
		return ok(`this machine's clock says ${momentText(now, zone)}`);
	return problem(
		`something was recorded at ${momentText(newest, zone)}, ${spanText(newest - now)} ahead of this machine's clock`,
		'set the clock of this machine: timedatectl set-ntp true',
	);
}

/** `database.…` of a server; all but the first are skipped where it cannot be looked into. */
export function serverChecks(found: Inspected, around: Surroundings): Check[] {
	const opened = (judge: (database: InspectedServer) => Answer | Promise<Answer>) => () =>
		found.kind === 'server' ? judge(found.database) : noContents(found);
	return [
		{ name: 'database.server', run: () => judgeServer(found, around) },
		{ name: 'database.schema', run: opened(({ schema }) => judgeSchema(schema, around)) },
		{ name: 'database.durability', run: opened(({ server }) => judgeDurability(server)) },
		{
			name: 'database.connections',
			run: opened(({ server: { connections, mostConnections } }) => {
				const says = `${connections} of ${mostConnections} connections are in use`;
				return connections > 0.8 * mostConnections
					? warning(says, 'a smaller ?pool=, a pooler such as PgBouncer, or a larger max_connections')
					: ok(says);
			}),
		},
		{
			name: 'database.clock',
			run: opened(async ({ contents, server: { ahead } }) => {
				const far = (await contents?.clockAhead()) ?? 0;
				const wrong = setClock("the server's", far, { step: null, ...around });
				if (wrong !== null) return wrong;
				if (Math.abs(ahead) <= 2 * microsPerSecond)
					return ok("the server's clock agrees with this machine's");
				return warning(
					`the server's clock is ${spanText(Math.abs(ahead))} ${ahead > 0 ? 'ahead of' : 'behind'} this machine's`,
					'let NTP keep the clocks of both: timedatectl set-ntp true',
				);
			}),
		},
	];
}

function judgeServer(found: Inspected, around: Surroundings): Verdict {
	if (found.kind === 'missing')
		return problem(
			`there is no database at ${found.path}`,
			around.line('engine', 'init', '--db', found.path),
		);
	const primary = 'name the primary with --db';
	if (found.kind === 'closed')
		return problem(found.message, found.code === 'read_only' ? primary : (closedFixes[found.code] ?? null));
	if (found.kind !== 'server') return skipped('it is a file');
	const { version, major, bytes, isReadOnly, isEncrypted } = found.database.server;
	const says = `PostgreSQL ${version}, ${sizeText(bytes)}, ${isEncrypted ? 'over TLS' : 'without TLS'}`;
	if (isReadOnly) return problem(`${says}: it is read-only, a replica or made so`, primary);
	if (major < oldestPostgres)
		return problem(`${says}: mailctl needs ${oldestPostgres} or newer`, 'upgrade PostgreSQL');
	return ok(says);
}

function judgeDurability({ synchronousCommit, standbys, replicas }: InspectedServer['server']): Verdict {
	if (synchronousCommit === 'off')
		return problem(
			'synchronous_commit is off: what is acknowledged may be lost when the server fails',
			'ALTER DATABASE … RESET synchronous_commit',
		);
	if (standbys === '' && replicas > 0)
		return warning(
			'commits do not wait for the replicas (synchronous_standby_names is empty): a failover may lose the last',
			"ALTER SYSTEM SET synchronous_standby_names = '*'",
		);
	if (standbys === '')
		return ok(
			'commits wait for the disk of the server; without a synchronous replica a failover may lose the last',
		);
	if (synchronousCommit === 'local')
		return warning(
			'commits do not wait for the replicas (synchronous_commit is local): a failover may lose the last',
			'ALTER DATABASE … SET synchronous_commit = on',
		);
	return ok(`commits wait for the disk and for ${standbys}`);
}
