/** The database file: there, ours, current, sound, and with room to grow. */
import { constants } from 'node:fs';
import { access, realpath, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Clock, type Micros, microsPerDay, microsPerSecond } from '../../../api/datetime.js';
import { readOnlyHint } from '../../frame/exit.js';
import { momentText } from '../../render/times.js';
import { gibibyte, mebibyte, sizeText, spanText } from '../../render/units.js';
import { noContents } from '../contents-checks.js';
import type { Inspected, InspectedDatabase } from '../inspection.js';
import { type Check, type CheckEnvironment, ok, problem, skipped, type Verdict, warning } from '../model.js';

/**
 * A MiB takes a millisecond of CPU and, from a slow disk, ten; meanwhile SQLite hears no signal. Beyond, only when asked
 * for.
 */
const quickBytes = 128 * mebibyte;
/** SQLite keeps the log at 64 MiB once it was copied back. */
const longLogBytes = 256 * mebibyte;
const clockSlack: Micros = 300 * microsPerSecond;

/** `database.…`; all but the first are skipped where the file cannot be opened. */
export function databaseChecks(
	found: Inspected,
	clock: Clock,
	{ line, zone, isFull }: CheckEnvironment,
): Check[] {
	const opened = (judge: (database: InspectedDatabase) => Verdict | Promise<Verdict>) => async () =>
		found.kind === 'open' ? judge(found.database) : noContents(found);
	return [
		{ name: 'database.file', run: () => judgeFile(found, line) },
		{ name: 'database.schema', run: opened(({ schema }) => judgeSchema(schema, line)) },
		{ name: 'database.sound', run: opened((database) => judgeSoundness(database, { line, isFull })) },
		{ name: 'database.log', run: opened((database) => judgeLog(database)) },
		{
			name: 'database.space',
			run: opened(async () => judgeSpace(await roomAt(found.path))),
		},
		{
			name: 'database.clock',
			run: opened(async ({ contents }) =>
				contents === null
					? skipped('the schema is another one than this version’s')
					: judgeClock({
							newest: await contents.newest(),
							step: await contents.clockStep(),
							ahead: await contents.clockAhead(),
							now: clock.now(),
							zone,
						}),
			),
		},
	];
}

type Line = CheckEnvironment['line'];

async function judgeFile(found: Inspected, line: Line): Promise<Verdict> {
	switch (found.kind) {
		case 'server':
			return skipped('it is on a server');
		case 'missing':
			return problem(
				`there is no database at ${found.path}`,
				line('engine', 'init', '--sender', 'ADDRESS', '--smtp', 'smtp://USER@HOST:587'),
			);
		case 'closed':
			return problem(found.message, found.code === 'read_only' ? readOnlyHint : closedFix(found.code));
		case 'open': {
			const locked = await findReadOnly(found.path);
			return locked === null
				? ok(`${found.path}, ${sizeText(found.database.bytes.file)}`)
				: problem(`this user may not write to ${locked}: ${whatIsLeft(found.database)}`, readOnlyHint);
		}
	}
}

/** What was moved or restored last has no write-ahead log yet, and to begin one is to write. */
export function whatIsLeft({ journalMode }: Pick<InspectedDatabase, 'journalMode'>): string {
	return journalMode === 'wal'
		? 'the database can be read, and nothing is stored or sent'
		: 'no command can open the database, to read it neither';
}

/** The file, or the folder that takes its log; null: both can be written to. */
async function findReadOnly(path: string): Promise<string | null> {
	const file = await realpath(path);
	for (const one of [file, dirname(file)])
		if (
			!(await access(one, constants.W_OK).then(
				() => true,
				() => false,
			))
		)
			return one;
	return null;
}

export function closedFix(code: string): string | null {
	if (code === 'locked') return 'another process holds it: try again when that has ended';
	if (code === 'disk_full') return 'free some space, or move the database';
	if (code === 'io') return 'look at the permissions of the file and its folder, and at the disk';
	if (code === 'denied') return 'correct user, password or rights; the URL stands in --db or MAILCTL_DB';
	if (code === 'unreachable') return 'look at host and port, at the network, and whether the server runs';
	return code === 'not_a_database' || code === 'bad_url' ? 'name another one with --db' : null;
}

/** `found` 0: an empty file. */
export function judgeSchema({ found, known }: InspectedDatabase['schema'], line: Line): Verdict {
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
	{ line, isFull }: Pick<CheckEnvironment, 'line' | 'isFull'>,
): Verdict {
	if (!isFull && bytes.file > quickBytes)
		return skipped(
			`${sizeText(bytes.file)} are read with --full only: ${line('doctor', '--only', 'database', '--full')}`,
		);
	const damage = attempt(() => findDamage(isFull ? 'whole' : 'quick'));
	if (damage instanceof Error)
		return problem(damage.message, 'look at the disk (dmesg, smartctl) before anything is restored');
	if (damage.length > 0)
		return problem(`the file is damaged: ${damageText(damage)}`, line('engine', 'restore', 'BACKUP'));
	return ok(isFull ? 'every page and every index is sound' : 'every page is sound');
}

/** SQLite puts a heading and several sentences into one message. */
function damageText(damage: readonly string[]): string {
	const said = damage.flatMap((one) => one.split('\n')).filter((one) => !one.startsWith('***'));
	const [first = 'SQLite does not say where', ...more] = said;
	return more.length === 0 ? first : `${first}, and ${more.length} more`;
}

function attempt(find: () => string[]): string[] | Error {
	try {
		return find();
	} catch (error) {
		return error instanceof Error ? error : new Error(String(error));
	}
}

/** Judges the journal mode and the size of the write-ahead log, which only the mode `wal` writes. */
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

/** Disk space in bytes; `free` is the part a user other than root may fill. */
export interface Room {
	free: number;
	total: number;
}

/** A tenth, but no more than 20 GiB: a tenth of a large disk is enough for years. */
export function judgeSpace({ free, total }: Room): Verdict {
	const says = `${sizeText(free)} of ${sizeText(total)} are free on its disk`;
	if (free < 100 * mebibyte)
		return problem(`${says}: writing fails soon`, 'free some space, or move the database');
	const little = Math.max(gibibyte, Math.min(total / 10, 20 * gibibyte));
	return free < little ? warning(says, 'free some space, or move the database') : ok(says);
}

async function roomAt(path: string): Promise<Room> {
	const { bavail, blocks, bsize } = await statfs(dirname(await realpath(path)));
	return { free: bavail * bsize, total: blocks * bsize };
}

interface ClockFacts {
	newest: Micros | null;
	step: { by: Micros; at: Micros } | null;
	ahead: Micros;
	now: Micros;
	zone: string;
}

/** The database deletes by the time that it has seen pass. */
export function aheadText(whose: string, ahead: Micros): [says: string, fix: string] {
	return [
		`${whose} clock is ${spanText(ahead)} ahead of when this database was last in use: nothing is deleted for its age before the clock has run for a day`,
		'set the clock if it is wrong: timedatectl set-ntp true',
	];
}

/** A set clock moves the queue; records made before that keep their times. */
function judgeClock({ newest, step, ahead, now, zone }: ClockFacts): Verdict {
	if (ahead > 0) return warning(...aheadText("this machine's", ahead));
	if (step !== null && Math.abs(now - step.at) < microsPerDay) {
		const how = step.by < 0 ? 'back' : 'forward';
		return warning(
			`this machine's clock was set ${how} by ${spanText(step.by)} at ${momentText(step.at, zone)}: what was recorded before has times of the clock before`,
			'let NTP keep the clock: timedatectl set-ntp true',
		);
	}
	if (newest === null || newest <= now + clockSlack)
		return ok(`this machine's clock says ${momentText(now, zone)}`);
	return problem(
		`something was recorded at ${momentText(newest, zone)}, ${spanText(newest - now)} ahead of this machine's clock`,
		'set the clock of this machine: timedatectl set-ntp true',
	);
}
