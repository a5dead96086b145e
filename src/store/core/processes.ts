import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import { codeOf } from '../../api/errors.js';
import { column, insertInto, parseStored, type Sql } from './sql.js';
import { openLanes } from './submissions.js';

export const heartbeatFreshMicros: Micros = 15 * microsPerSecond;
export const heartbeatEveryMicros: Micros = 5 * microsPerSecond;

export interface ProcessIdentity {
	id: string;
	/** `serve`, `serve --no-worker`, `worker`, `cli` or `send`. A `cli` process becomes `send` at its first lease. */
	role: string;
	host: string;
	pid: number;
}

interface LiveProcess extends ProcessIdentity {
	heartbeat_at: Micros;
}

export function beat(sql: Sql, me: ProcessIdentity, now: Micros): void {
	const { id, role, host, pid } = me;
	insertInto(
		sql,
		'processes',
		{ id, role, host, pid, started_at: now, heartbeat_at: now },
		'ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, role = excluded.role',
	);
}

export function endBeat(sql: Sql, me: ProcessIdentity): void {
	sql.write('DELETE FROM processes WHERE id = ?', [me.id]);
}

export async function findOthers(sql: Sql, me: ProcessIdentity, now: Micros): Promise<LiveProcess[]> {
	return (await findFresh(sql, me, now)).filter((other) => !isLost(other));
}

export async function findFresh(sql: Sql, me: ProcessIdentity, now: Micros): Promise<LiveProcess[]> {
	return await sql.all<LiveProcess>(
		`SELECT id, role, host, pid, heartbeat_at
		FROM processes
		WHERE id <> ? AND heartbeat_at > ?
		ORDER BY id`,
		[me.id, now - heartbeatFreshMicros],
	);
}

/** Identifies the boot and PID namespace. The fallback is the host name, which containers and clones may share. */
function readPlace(): string {
	try {
		const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
		return `${boot}-${readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')}`;
	} catch {
		return hostname();
	}
}

function readStat(pid: number): { state: string; start: string } | null {
	try {
		const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
		const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
		return { state: fields[0] ?? '', start: fields[19] ?? '' };
	} catch {
		return null;
	}
}

const own = { place: '', mark: '' };

/** PIDs and monotonic clocks are comparable only between processes of the same boot and container. */
export function processPlace(): string {
	own.place ||= readPlace();
	return own.place;
}

/** `PLACE/START`. The start time distinguishes this process from earlier processes with its PID. */
export function processMark(): string {
	own.mark ||= `${processPlace()}/${readStat(process.pid)?.start ?? ''}`;
	return own.mark;
}

export function leaseOwner(name: string): string {
	return `${ownersOf({ id: processMark(), host: hostname(), pid: process.pid })}${name}`;
}

export function ownersOf({ id, host, pid }: { id: string; host: string; pid: number }): string {
	return `${host}:${pid}:${id.split('/', 2).join('/')}:`;
}

function ownerOf(owner: string): { id: string; host: string; pid: number } | null {
	const [host = '', pid = '', mark = '', ...name] = owner.split(':');
	return name.length === 0 ? null : { id: `${mark}/${name.join(':')}`, host, pid: Number(pid) };
}

/**
 * True if a process has certainly ended: it ran in this boot and container, and its PID is free or has another start
 * time. `id` is `PLACE/START/NAME`.
 */
export function isLost({ id, pid }: { id: string; pid: number }): boolean {
	const [place, start] = id.split('/');
	if (place !== processPlace()) return false;
	if (!isRunning(pid)) return true;
	const stat = readStat(pid);
	return stat !== null && (stat.state === 'Z' || stat.state === 'X' || stat.start !== start);
}

function isRunning(pid: number): boolean {
	try {
		process.kill(pid, 0);
		return true;
	} catch (error) {
		// EPERM: the process runs as another user.
		return codeOf(error) === 'EPERM';
	}
}

const longestLease: Micros = 600 * microsPerSecond;

/** A suspended process keeps its leases. */
export async function reclaimLeases(
	sql: Sql,
	{ me, heardBefore, now }: { me: ProcessIdentity; heardBefore: Micros; now: Micros },
): Promise<void> {
	const others = await sql.all<ProcessIdentity>(
		'SELECT id, role, host, pid FROM processes WHERE id <> ? AND heartbeat_at <= ? ORDER BY id',
		[me.id, heardBefore],
	);
	for (const other of others) {
		if (!isLost(other)) continue;
		const owners = ownersOf(other);
		const isOurs = `lease_owner IS NOT NULL AND substr(lease_owner, 1, ${owners.length}) = ?`;
		for (const lane of await openLanes(sql)) {
			// Uses the index messages_due (lane, wake_at), to read only messages that are leased or due soon.
			await sql.run(
				`UPDATE messages
				SET wake_at = ?
				WHERE lane = ? AND wake_at IS NOT NULL AND wake_at > ? AND wake_at <= ? AND state = 'leased' AND ${isOurs}`,
				[now, lane, now, now + longestLease, owners],
			);
		}
		await sql.run(
			`UPDATE webhook_deliveries
			SET due_at = ?
			WHERE due_at > ? AND due_at <= ? AND state = 'sending' AND ${isOurs}`,
			[now, now, now + longestLease, owners],
		);
		await sql.run('DELETE FROM processes WHERE id = ?', [other.id]);
	}
}

export async function endLeasesOfLost(sql: Sql, lane: number, now: Micros): Promise<void> {
	const leased = "lane = ? AND wake_at IS NOT NULL AND wake_at > ? AND state = 'leased'";
	const owners = await column<string | null>(
		sql,
		`SELECT DISTINCT lease_owner FROM messages WHERE ${leased} ORDER BY lease_owner`,
		[lane, now],
	);
	for (const name of owners) {
		const owner = name === null ? null : ownerOf(name);
		if (owner === null || !isLost(owner)) continue;
		const ended = `UPDATE messages SET wake_at = ? WHERE ${leased} AND lease_owner = ?`;
		await sql.run(ended, [now, lane, now, name]);
	}
}

/**
 * The machine's clock may be years ahead. Retention therefore uses a proven time, `at`, that advances with the steady
 * clock.
 */
interface Proven {
	at: Micros;
	boot: string;
	steady: Micros;
	/** `ahead`: how far the machine's clock is ahead of `at`. `agreed`: how long that difference has been constant. */
	ahead: Micros;
	agreed: Micros;
}

/** A clock ahead by less than this needs no proof. */
const slack: Micros = 3_600 * microsPerSecond;

export async function provenTime(sql: Sql, now: Micros, most: Micros = slack): Promise<Micros> {
	const kept = await read(sql);
	return kept !== null && now - kept.at > most ? kept.at : now;
}

/**
 * Accepts a clock that is far ahead only if it has agreed with the steady clock for a day. The newest message must also
 * be less than a day old.
 */
export async function proveTime(
	sql: Sql,
	{ now, steady, boot }: { now: Micros; steady: Micros; boot: string },
): Promise<void> {
	const kept = await read(sql);
	const newest = await sql.get<{ at: Micros }>(
		'SELECT created_at AS at FROM messages ORDER BY id DESC LIMIT 1',
	);
	const passed = kept?.boot === boot ? Math.max(0, steady - kept.steady) : 0;
	const at = kept === null ? (newest?.at ?? now) : kept.at + passed;
	const ahead = now - at;
	const isSame = kept !== null && Math.abs(ahead - kept.ahead) < microsPerDay;
	const agreed = isSame ? kept.agreed + passed : 0;
	const isRight =
		ahead <= slack || (agreed >= microsPerDay && newest !== undefined && newest.at > now - microsPerDay);
	const next: Proven = isRight
		? { at: now, boot, steady, ahead: 0, agreed: 0 }
		: { at, boot, steady, ahead, agreed };
	const row = { id: 1, boot: '', ahead: 0, proven: JSON.stringify(next) };
	insertInto(sql, 'clock', row, 'ON CONFLICT (id) DO UPDATE SET proven = excluded.proven');
}

async function read(sql: Sql): Promise<Proven | null> {
	const row = await sql.get<{ proven: string | null }>('SELECT proven FROM clock');
	return row?.proven == null ? null : (parseStored(row.proven) as Proven);
}
