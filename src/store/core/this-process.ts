/** Tells processes apart that share a database: which are certainly gone, and which may run elsewhere. */
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/**
 * The boot and the PID namespace. Containers may share a host's name and count their own pids, and a cloned machine keeps
 * its name. The host's name where the system has neither.
 */
function readPlace(): string {
	try {
		const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
		return `${boot}-${readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')}`;
	} catch {
		return hostname();
	}
}

/** Reads the state of a process in this place (proc_pid_stat(5)); null: it is gone, or the system does not say. */
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

/** The boot of the machine, and the container: pids and the steady clock count within it. */
export function processPlace(): string {
	own.place ||= readPlace();
	return own.place;
}

/** `PLACE/START`: no other process has or had it. */
export function processMark(): string {
	own.mark ||= `${processPlace()}/${readStat(process.pid)?.start ?? ''}`;
	return own.mark;
}

/** The owner of leases of this process: `HOST:PID:MARK:NAME`. */
export function leaseOwner(name: string): string {
	return `${ownersOf({ id: processMark(), host: hostname(), pid: process.pid })}${name}`;
}

/** How the owners of a process begin. */
export function ownersOf({ id, host, pid }: { id: string; host: string; pid: number }): string {
	return `${host}:${pid}:${id.split('/', 2).join('/')}:`;
}

/**
 * Whether a process is certainly gone: it ran in this place, and its pid is free or another's. `id`: `MARK/NAME`; one of an
 * earlier version has no mark, and only its host and pid are known.
 */
export function isLost({ id, host, pid }: { id: string; host: string; pid: number }): boolean {
	const [place, start, name] = id.split('/');
	if (name === undefined) return host === hostname() && !isRunning(pid);
	if (place !== processPlace()) return false;
	if (!isRunning(pid)) return true;
	const stat = readStat(pid);
	return stat !== null && (stat.state === 'Z' || stat.state === 'X' || stat.start !== start);
}

/** Only for processes of this machine. */
export function isRunning(pid: number): boolean {
	try {
		process.kill(pid, 0);
		return true;
	} catch (error) {
		// EPERM: it runs, as another user.
		return error instanceof Error && 'code' in error && error.code === 'EPERM';
	}
}
