/**
 * Writes the configuration files with `conf`: atomically, mode 0600 in a folder of 0700. A lock allows one writer at a
 * time, so that no change is lost.
 */
import { chmodSync, closeSync, openSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, systemReason } from '../../api/errors.js';
import { makeFolders } from '../../jobs/folders.js';
import { ConfigError } from '../frame/errors.js';
import { unwritableHint } from '../frame/exit.js';
import {
	type ConfigFile,
	originOf,
	type Paths,
	type Profile,
	readConfig,
	readTokens,
	type StoredToken,
} from './config.js';

export interface Changed {
	droppedToken: string | null;
}

/**
 * Sets keys of a profile; `undefined` removes a key. Removes an empty profile. Reads first, so that a broken file
 * stays. Before it stores another origin, removes the profile's token. `isDefault` makes the profile the default.
 */
export function changeProfile(
	paths: Paths,
	name: string,
	change: Readonly<Record<string, unknown>>,
	options: { isDefault?: boolean } = {},
): Promise<Changed> {
	return writing(paths, async (files) => {
		const { config } = files;
		const before = config.profiles[name];
		const merged = Object.entries({ ...before, ...change });
		const profile: Profile = Object.fromEntries(merged.filter(([, value]) => value !== undefined));
		const droppedToken = 'baseUrl' in change ? await dropForeign(files, name, before, profile) : null;
		const others = Object.entries(config.profiles).filter(([key]) => key !== name);
		const kept = Object.keys(profile).length === 0 ? others : [...others, [name, profile] as const];
		const changed: ConfigFile = {
			profile: options.isDefault === true ? name : config.profile,
			profiles: Object.fromEntries(kept),
		};
		await files.saveConfig({ ...config, ...changed });
		return { droppedToken };
	});
}

export function changeDefaultProfile(paths: Paths, name: string | null): Promise<void> {
	return writing(paths, ({ config, saveConfig }) => saveConfig({ ...config, profile: name }));
}

export function storeLogin(
	paths: Paths,
	name: string,
	login: { baseUrl: string; token: string; isDefault: boolean },
): Promise<void> {
	const { baseUrl, token, isDefault } = login;
	return writing(paths, async ({ config, tokens, saveConfig, saveTokens }) => {
		// The stored token names its origin, so that after a crash it is not sent elsewhere.
		await saveTokens({ ...tokens, [name]: { token, origin: originOf(baseUrl) } });
		await saveConfig({
			profile: isDefault ? name : config.profile,
			profiles: { ...config.profiles, [name]: { ...config.profiles[name], baseUrl } },
		});
	});
}

export function removeToken(paths: Paths, name: string): Promise<boolean> {
	return writing(paths, async ({ tokens, saveTokens }) => {
		if (!Object.hasOwn(tokens, name)) return false;
		await saveTokens(without(tokens, name));
		return true;
	});
}

export function removeProfile(paths: Paths, name: string): Promise<void> {
	return writing(paths, async ({ config, tokens, saveConfig, saveTokens }) => {
		if (Object.hasOwn(tokens, name)) await saveTokens(without(tokens, name));
		await saveConfig({
			profile: config.profile === name ? null : config.profile,
			profiles: without(config.profiles, name),
		});
	});
}

/** Stores the token under both names until the profile has the new one. */
export function renameProfile(paths: Paths, from: string, to: string): Promise<void> {
	return writing(paths, async ({ config, tokens, saveConfig, saveTokens }) => {
		const token = Object.hasOwn(tokens, from) ? tokens[from] : undefined;
		if (token !== undefined) await saveTokens({ ...tokens, [to]: token });
		await saveConfig({
			profile: config.profile === from ? to : config.profile,
			profiles: Object.fromEntries(
				Object.entries(config.profiles).map(([name, profile]) => [name === from ? to : name, profile]),
			),
		});
		if (token !== undefined) await saveTokens({ ...without(tokens, from), [to]: token });
	});
}

interface Files {
	config: ConfigFile;
	tokens: Readonly<Record<string, StoredToken>>;
	saveConfig(config: ConfigFile): Promise<void>;
	saveTokens(tokens: Readonly<Record<string, StoredToken>>): Promise<void>;
}

/** Reads both files, and checks them, before it writes either. */
async function writing<T>(paths: Paths, change: (files: Files) => Promise<T>): Promise<T> {
	// Report a broken file even if the folder is not writable.
	readConfig(paths);
	makeFolder(paths);
	return exclusively(paths, () =>
		change({
			config: readConfig(paths),
			tokens: readTokens(paths),
			saveConfig: ({ profile, profiles }) => save(paths, paths.config, { profile, profiles }),
			saveTokens: (tokens) => save(paths, paths.credentials, { tokens: asWritten(tokens) }),
		}),
	);
}

async function dropForeign(
	{ tokens, saveTokens }: Files,
	name: string,
	before: Profile | undefined,
	after: Profile,
): Promise<string | null> {
	const stored = Object.hasOwn(tokens, name) ? tokens[name] : undefined;
	if (stored === undefined) return null;
	const origin = stored.origin ?? (before?.baseUrl === undefined ? null : originOf(before.baseUrl));
	if (after.baseUrl !== undefined && origin === originOf(after.baseUrl)) return null;
	await saveTokens(without(tokens, name));
	return origin ?? 'an unknown origin';
}

function without<T>(record: Readonly<Record<string, T>>, name: string): Record<string, T> {
	return Object.fromEntries(Object.entries(record).filter(([key]) => key !== name));
}

function asWritten(tokens: Readonly<Record<string, StoredToken>>): Record<string, unknown> {
	return Object.fromEntries(
		Object.entries(tokens).map(([name, { token, origin }]) => [
			name,
			origin === null ? token : { token, origin },
		]),
	);
}

function makeFolder(paths: Paths): void {
	try {
		makeFolders(paths.folder);
		// Another program, or an unusual umask, may have opened the folder to all.
		chmodSync(paths.folder, 0o700);
	} catch (cause) {
		throw unwritable(paths.folder, cause);
	}
}

function unwritable(path: string, cause: unknown): ConfigError {
	const hint = unwritableHint('set XDG_CONFIG_HOME to another folder');
	return new ConfigError(`${path} cannot be written: ${systemReason(cause)}`, { hint, cause });
}

async function save(paths: Paths, file: string, values: Readonly<Record<string, unknown>>): Promise<void> {
	try {
		const { default: Conf } = await import('conf');
		const conf = new Conf<Record<string, unknown>>({
			cwd: paths.folder,
			configName: basename(file, '.json'),
			configFileMode: 0o600,
			clearInvalidConfig: false,
			accessPropertiesByDotNotation: false,
			projectName: 'mailctl',
		});
		const merged = Object.entries({ ...conf.store, ...values });
		conf.store = Object.fromEntries(merged.filter(([, value]) => value !== null));
	} catch (cause) {
		throw unwritable(file, cause);
	}
}

/** A process holds the lock for a few milliseconds, so an older lock belongs to a process that died. */
const staleMs = 5_000;
const everyMs = 20;

/** Runs `work` while no other process does. The folder must exist. */
export async function exclusively<T>(paths: Paths, work: () => Promise<T>): Promise<T> {
	const file = join(paths.folder, 'lock');
	for (let waitedMs = 0; !taken(file); waitedMs += everyMs) {
		if (waitedMs === staleMs) rmSync(file, { force: true });
		await delay(everyMs);
	}
	try {
		return await work();
	} finally {
		remove(file);
	}
}

/** If the lock file stays, the next process removes it as stale. */
function remove(file: string): void {
	try {
		rmSync(file, { force: true });
	} catch {}
}

function taken(file: string): boolean {
	try {
		closeSync(openSync(file, 'wx', 0o600));
		return true;
	} catch (cause) {
		if (codeOf(cause) === 'EEXIST') return false;
		throw unwritable(file, cause);
	}
}
