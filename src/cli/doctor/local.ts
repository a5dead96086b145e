/** The checks of a database of this machine, and of the environment it needs to send. */
import { existsSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isPostgres } from '../../store/url.js';
import { type Paths, readConfig } from '../config/config.js';
import type { Target } from '../frame/connection.js';
import type { CommandContext } from '../frame/context.js';
import { configChecks } from './checks/config.js';
import { databaseChecks } from './checks/database.js';
import { dnsChecks } from './checks/dns.js';
import { machineChecks } from './checks/machine.js';
import { publicUrlChecks } from './checks/public-url.js';
import { queueChecks } from './checks/queue.js';
import { secretsCheck } from './checks/secrets.js';
import { serverChecks } from './checks/server.js';
import { settingsChecks } from './checks/settings.js';
import { smtpChecks } from './checks/smtp.js';
import { webhookChecks } from './checks/webhooks.js';
import { contentsChecks } from './contents-checks.js';
import { createNames } from './dns.js';
import type { Inspected } from './inspection.js';
import { type Check, type CheckEnvironment, skipped } from './model.js';

export interface LocalOptions {
	environment: CheckEnvironment;
	nameServer: string | undefined;
}

/** Opens the database to look at it; `close` when the checks are done. */
export async function localChecks(
	cx: CommandContext,
	target: Extract<Target, { kind: 'local' }>,
	{ environment, nameServer }: LocalOptions,
): Promise<{ checks: Check[]; close(): Promise<void> }> {
	const names = createNames(nameServer);
	// Before it is opened: an open database has temporary files beside it.
	const files = isPostgres(target.url) ? [] : databaseFiles(target.url);
	const { inspectLocal, inspectOnServer } = await import('../connect/doctor.js');
	const { readWrappingKeys } = await import('../connect/wrapping-keys.js');
	const keysFor = ({ io }: CommandContext) => {
		try {
			return { given: readWrappingKeys(io.env), problem: null };
		} catch (error) {
			return { given: [], problem: error instanceof Error ? error.message : String(error) };
		}
	};
	const keys = keysFor(cx);
	const isNamed = cx.settings.target.origin.level !== 'default' || isReadable(cx.paths);
	const { clock } = cx;
	const isOnServer = isPostgres(target.url);
	const inspect = isOnServer ? inspectOnServer : inspectLocal;
	const found: Inspected = isNamed
		? await inspect(target.url, { clock, trace: cx.trace, keys: keys.given })
		: { kind: 'missing', path: target.url };
	const ofContents = contentsChecks(found);
	return {
		checks: [
			...machineChecks(),
			...configChecks({ paths: cx.paths, ...secretsOf(found, files, cx.io.env['MAILCTL_KEY_FILE'] || null) }),
			...(isOnServer ? serverChecks(found, environment) : databaseChecks(found, clock, environment)).map(
				(check) =>
					isNamed || check.name !== 'database.file' ? check : { ...check, run: async () => notNamed },
			),
			secretsCheck(ofContents, keys, environment),
			...settingsChecks(ofContents, environment),
			...smtpChecks(ofContents, clock, environment),
			...queueChecks(ofContents, clock, environment),
			...webhookChecks(ofContents, clock, environment),
			...dnsChecks(ofContents, names, environment),
			...publicUrlChecks(ofContents, names, environment),
		],
		close: async () => {
			names.close();
			if ('database' in found) await found.database.close();
		},
	};
}

const notNamed = skipped('the configuration, which may name another database, cannot be read');

function isReadable(paths: Paths): boolean {
	try {
		readConfig(paths);
		return true;
	} catch {
		return false;
	}
}

const unjudged: ReadonlySet<string> = new Set(['not_a_database', 'read_only']);

/** A device or a folder, named by mistake, holds no secrets: no hint to change its mode. */
function secretsOf(
	found: Inspected,
	files: string[],
	keyFile: string | null,
): { secrets: string[][]; folder: string | null } {
	const others = [[`${found.path}.token`], ...(keyFile === null ? [] : [[keyFile]])];
	if (isPostgres(found.path)) return { secrets: others.slice(1), folder: null };
	// Of one that this user may only read, `database.file` says all that this user can do.
	const isUnjudged = found.kind === 'closed' && unjudged.has(found.code);
	if (found.kind === 'missing' || isUnjudged) return { secrets: others, folder: null };
	return { secrets: [files, ...others], folder: dirname(files[0] ?? resolve(found.path)) };
}

/** The database file and its companions, which SQLite keeps beside the file itself, wherever a link to it is. */
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
