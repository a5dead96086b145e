import { existsSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { StoreError } from '../../api/errors.js';
import { DatabaseMissing } from '../../store/errors.js';
import { isPostgres } from '../../store/url.js';
import { readConfig } from '../config/config.js';
import type { Contents } from '../connect/inspect.js';
import type { CommandContext } from '../frame/context.js';
import { type Checks, firstError, Skip, type Surroundings } from './checks.js';
import { configChecks } from './config.js';
import { fileChecks, serverChecks } from './database.js';
import { createNames, dnsChecks } from './dns.js';
import { queueChecks } from './queue.js';
import { sendingChecks } from './sending.js';

export async function localChecks(
	cx: CommandContext,
	url: string,
	around: Surroundings,
	nameServer: string | undefined,
): Promise<{ checks: Checks; close(): Promise<void> }> {
	const names = createNames(nameServer);
	const isOnServer = isPostgres(url);
	// Before it is opened: an open database has temporary files beside it.
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
	const contents = (): Contents => {
		if (opened === null) throw new Skip('the database is not open');
		if (opened.contents === null) throw new Skip('the database has the schema of another version');
		return opened.contents;
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
			...configChecks(cx.paths, secrets, folder),
			...(isOnServer ? serverChecks : fileChecks)(url, found, contents, around),
			...sendingChecks(contents, keys, around),
			...queueChecks(contents, around),
			...dnsChecks(contents, names, around),
		},
		close: async () => {
			names.close();
			await opened?.close();
		},
	};
}

/** A configuration that cannot be read may name another database than the default one. */
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

/** The database file and its companions, which SQLite keeps beside the file itself, wherever a link to it is. */
function databaseFiles(path: string): string[] {
	if (!existsSync(path)) return [];
	const file = realpathSync(path);
	return ['', '-wal', '-shm', '-journal'].map((suffix) => file + suffix).filter((one) => existsSync(one));
}
