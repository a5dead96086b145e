/** The checks of a database of this machine and of what it needs to send. */
import { existsSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Target } from '../connection.js';
import type { CommandContext } from '../context.js';
import { configChecks } from './checks/config.js';
import { databaseChecks } from './checks/database.js';
import { dnsChecks } from './checks/dns.js';
import { machineChecks } from './checks/machine.js';
import { publicUrlChecks } from './checks/public-url.js';
import { queueChecks } from './checks/queue.js';
import { settingsChecks } from './checks/settings.js';
import { smtpChecks } from './checks/smtp.js';
import { webhookChecks } from './checks/webhooks.js';
import type { Inspected } from './inspected.js';
import { lookingInto } from './looking.js';
import type { Check, Surroundings } from './model.js';
import { createNames } from './names.js';

/** What the options of the command come to. */
export interface LocalOptions {
	surroundings: Surroundings;
	nameServer: string | undefined;
}

/** Opens the database to look at it; `close` when the checks are done. Throws `UnsupportedDatabase`. */
export async function localChecks(
	cx: CommandContext,
	target: Extract<Target, { kind: 'local' }>,
	{ surroundings, nameServer }: LocalOptions,
): Promise<{ checks: Check[]; close(): Promise<void> }> {
	const names = createNames(nameServer);
	// Before it is opened: while it is, SQLite keeps files beside it that are gone again afterwards.
	const files = databaseFiles(target.url);
	const { inspectLocal } = await import('../connect/doctor.js');
	const found = inspectLocal(target.url, { clock: cx.clock, trace: tracer(cx) });
	const { clock } = cx;
	const look = lookingInto(found);
	return {
		checks: [
			...machineChecks(),
			...configChecks({ paths: cx.paths, ...secretsOf(found, files) }),
			...databaseChecks(found, clock, surroundings),
			...settingsChecks(look, surroundings),
			...smtpChecks(look, clock, surroundings),
			...queueChecks(look, clock, surroundings),
			...webhookChecks(look, clock, surroundings),
			...dnsChecks(look, names, surroundings),
			...publicUrlChecks(look, surroundings),
		],
		close: async () => {
			names.close();
			if (found.kind === 'open') found.database.close();
		},
	};
}

/** A device or a folder that was named by mistake holds none, and is not to be told to close. */
function secretsOf(found: Inspected, files: string[]): { secrets: string[][]; folder: string | null } {
	const token = [`${found.path}.token`];
	const isNone = found.kind === 'missing' || (found.kind === 'closed' && found.code === 'not_a_database');
	if (isNone) return { secrets: [token], folder: null };
	return { secrets: [files, token], folder: dirname(files[0] ?? resolve(found.path)) };
}

/** The file and what is beside it; SQLite keeps that beside the file itself, wherever a link to it is. */
function databaseFiles(path: string): string[] {
	const file = realFile(path);
	return ['', '-wal', '-shm', '-journal'].map((suffix) => file + suffix).filter((one) => existsSync(one));
}

/** Links followed; as it was named where it cannot be. */
function realFile(path: string): string {
	try {
		return realpathSync(path);
	} catch {
		return resolve(path);
	}
}

function tracer({ io, settings }: CommandContext): (line: string) => void {
	return (line) => {
		if (settings.debug.value) void io.stderr.write(`${line}\n`);
	};
}
