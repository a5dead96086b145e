/** Writes configuration files atomically with the package `conf`: files of mode 0600 in a folder of mode 0700. */
import { chmodSync } from 'node:fs';
import { basename } from 'node:path';
import { systemReason } from '../../api/errors.js';
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
	/** The origin of a token that was removed because the profile's new base URL has another origin; else null. */
	droppedToken: string | null;
}

/**
 * Sets keys of a profile; `undefined` removes a key. Removes a profile that has no keys left. Removes the stored token
 * if `change` removes `baseUrl` or sets a URL of another origin.
 */
export function changeProfile(
	paths: Paths,
	name: string,
	change: Readonly<Record<string, unknown>>,
	options: { isDefault?: boolean } = {},
): Promise<Changed> {
	return writing(paths, ({ config, tokens, saveConfig, saveTokens }) => {
		const merged = Object.entries({ ...config.profiles[name], ...change });
		const profile: Profile = Object.fromEntries(merged.filter(([, value]) => value !== undefined));
		const origin = profile.baseUrl === undefined ? null : originOf(profile.baseUrl);
		const stored = Object.hasOwn(tokens, name) ? tokens[name] : undefined;
		const isForeign = 'baseUrl' in change && stored !== undefined && stored.origin !== origin;
		if (isForeign) saveTokens(without(tokens, name));
		const others = without(config.profiles, name);
		saveConfig({
			profile: options.isDefault === true ? name : config.profile,
			profiles: Object.keys(profile).length === 0 ? others : { ...others, [name]: profile },
		});
		return { droppedToken: isForeign ? stored.origin : null };
	});
}

export function changeDefaultProfile(paths: Paths, name: string | null): Promise<void> {
	return writing(paths, ({ config, saveConfig }) => saveConfig({ ...config, profile: name }));
}

export function storeLogin(
	paths: Paths,
	name: string,
	{ baseUrl, token, isDefault }: { baseUrl: string; token: string; isDefault: boolean },
): Promise<void> {
	return writing(paths, ({ config, tokens, saveConfig, saveTokens }) => {
		// Store the origin too: if a crash prevents the next write, mailctl still sends the token to no other server.
		saveTokens({ ...tokens, [name]: { token, origin: originOf(baseUrl) } });
		saveConfig({
			profile: isDefault ? name : config.profile,
			profiles: { ...config.profiles, [name]: { ...config.profiles[name], baseUrl } },
		});
	});
}

export function removeToken(paths: Paths, name: string): Promise<void> {
	return writing(paths, ({ tokens, saveTokens }) => saveTokens(without(tokens, name)));
}

export function removeProfile(paths: Paths, name: string): Promise<void> {
	return writing(paths, ({ config, tokens, saveConfig, saveTokens }) => {
		if (Object.hasOwn(tokens, name)) saveTokens(without(tokens, name));
		saveConfig({
			profile: config.profile === name ? null : config.profile,
			profiles: without(config.profiles, name),
		});
	});
}

/** Stores the token under both names until the profile is renamed, so that a crash cannot lose it. */
export function renameProfile(paths: Paths, from: string, to: string): Promise<void> {
	return writing(paths, ({ config, tokens, saveConfig, saveTokens }) => {
		const token = Object.hasOwn(tokens, from) ? tokens[from] : undefined;
		if (token !== undefined) saveTokens({ ...tokens, [to]: token });
		saveConfig({
			profile: config.profile === from ? to : config.profile,
			profiles: Object.fromEntries(
				Object.entries(config.profiles).map(([name, profile]) => [name === from ? to : name, profile]),
			),
		});
		if (token !== undefined) saveTokens({ ...without(tokens, from), [to]: token });
	});
}

interface Files {
	config: ConfigFile;
	tokens: Readonly<Record<string, StoredToken>>;
	saveConfig(config: ConfigFile): void;
	saveTokens(tokens: Files['tokens']): void;
}

/** Does not yield between reading and writing, so two calls in one process cannot overwrite each other's changes. */
async function writing<T>(paths: Paths, change: (files: Files) => T): Promise<T> {
	// If the configuration is broken and the folder is not writable, report the broken file.
	readConfig(paths);
	const { default: Conf } = await import('conf');
	const save = (file: string, values: object) =>
		refusing(file, () => {
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
		});
	refusing(paths.folder, () => {
		makeFolders(paths.folder);
		// Another program or a lax umask may have made the folder readable for all.
		chmodSync(paths.folder, 0o700);
	});
	return change({
		config: readConfig(paths),
		tokens: readTokens(paths),
		saveConfig: (config) => save(paths.config, config),
		saveTokens: (tokens) => save(paths.credentials, { tokens }),
	});
}

function without<T>(record: Readonly<Record<string, T>>, name: string): Record<string, T> {
	return Object.fromEntries(Object.entries(record).filter(([key]) => key !== name));
}

function refusing(path: string, write: () => void): void {
	try {
		write();
	} catch (cause) {
		const hint = unwritableHint('set XDG_CONFIG_HOME to another folder');
		throw new ConfigError(`${path} cannot be written: ${systemReason(cause)}`, { hint, cause });
	}
}
