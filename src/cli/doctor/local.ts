/** The checks of a database of this machine, and of the environment it needs to send. */
import { existsSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { isPostgres } from '../../store/url.js';
import { type Paths, readConfig } from '../config/config.js';
import type { Target } from '../frame/connection.js';
import type { CommandContext } from '../frame/context.js';
import type { Check, Surroundings } from './checks.js';
import { configChecks } from './config.js';
import { fileChecks, serverChecks } from './database.js';
import { createNames, dnsChecks } from './dns.js';
import { type Inspected, ofContents } from './inspection.js';
import { queueChecks } from './queue.js';
import { publicUrlCheck, sendingChecks, webhookCheck } from './sending.js';

/** Opens the database to look at it; `close` when the checks are done. */
export async function localChecks(
	cx: CommandContext,
	{ url }: Extract<Target, { kind: 'local' }>,
	{ around, nameServer }: { around: Surroundings; nameServer: string | undefined },
): Promise<{ checks: Check[]; close(): Promise<void> }> {
	const names = createNames(nameServer);
	const isOnServer = isPostgres(url);
	// Before it is opened: an open database has temporary files beside it.
	const files = isOnServer ? [] : databaseFiles(url);
	const keys = await readKeys(cx);
	const isNamed = cx.settings.target.origin.level !== 'default' || isReadable(cx.paths);
	const { inspectLocal, inspectOnServer } = await import('../connect/doctor.js');
	const inspect = isOnServer ? inspectOnServer : inspectLocal;
	const found: Inspected = isNamed
		? await inspect(url, { clock: cx.clock, trace: cx.trace, keys: keys.given })
		: { kind: 'unnamed', path: url };
	// A device or a folder, named by mistake, holds no secrets, and what this user may only read is told by its check.
	const isOpen = found.kind === 'open';
	const keyFile = cx.io.env['MAILCTL_KEY_FILE'];
	const secrets = [
		...(isOpen ? [files] : []),
		...(isOnServer ? [] : [[`${url}.token`]]),
		...(keyFile ? [[keyFile]] : []),
	];
	const of = ofContents(found);
	return {
		checks: [
			...configChecks(cx.paths, secrets, isOpen ? dirname(files[0] ?? url) : null),
			...(isOnServer ? serverChecks(found, around) : fileChecks(found, of, around)),
			...sendingChecks(of, keys, around),
			...queueChecks(of, around),
			webhookCheck(of, around),
			...dnsChecks(of, names, around),
			publicUrlCheck(of, around),
		],
		close: async () => {
			names.close();
			if ('database' in found) await found.database.close();
		},
	};
}

async function readKeys({ io }: CommandContext) {
	const { readWrappingKeys } = await import('../connect/wrapping-keys.js');
	try {
		return { given: readWrappingKeys(io.env), problem: null };
	} catch (error) {
		return { given: [], problem: error instanceof Error ? error.message : String(error) };
	}
}

function isReadable(paths: Paths): boolean {
	try {
		readConfig(paths);
		return true;
	} catch {
		return false;
	}
}

/** The database file and its companions, which SQLite keeps beside the file itself, wherever a link to it is. */
function databaseFiles(path: string): string[] {
	if (!existsSync(path)) return [];
	const file = realpathSync(path);
	return ['', '-wal', '-shm', '-journal'].map((suffix) => file + suffix).filter((one) => existsSync(one));
}
