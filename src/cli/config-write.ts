/** Changes to the configuration files: through conf, atomically, 0600 in a folder of 0700. */
import { chmodSync, mkdirSync } from 'node:fs';
import { basename } from 'node:path';
import { type ConfigFile, type Paths, type Profile, readConfig } from './config.js';
import { ConfigError } from './errors.js';

/** Sets keys of a profile; `undefined` removes one. An empty profile goes away. Reads first: a broken file stays. */
export async function changeProfile(
	paths: Paths,
	name: string,
	change: Readonly<Record<string, unknown>>,
): Promise<void> {
	const config = readConfig(paths);
	const merged = Object.entries({ ...config.profiles[name], ...change });
	const profile: Profile = Object.fromEntries(merged.filter(([, value]) => value !== undefined));
	const others = Object.entries(config.profiles).filter(([key]) => key !== name);
	const kept = Object.keys(profile).length === 0 ? others : [...others, [name, profile] as const];
	await writeConfig(paths, { ...config, profiles: Object.fromEntries(kept) });
}

/** Which profile is used when none is named; `null`: the built-in one. */
export async function changeDefaultProfile(paths: Paths, name: string | null): Promise<void> {
	await writeConfig(paths, { ...readConfig(paths), profile: name });
}

async function writeConfig(paths: Paths, { profile, profiles }: ConfigFile): Promise<void> {
	const conf = await openFile(paths, paths.config);
	try {
		conf.set('profiles', profiles);
		if (profile === null) conf.delete('profile');
		else conf.set('profile', profile);
	} catch (cause) {
		throw new ConfigError(`${paths.config} cannot be written`, { cause });
	}
}

async function openFile(paths: Paths, file: string) {
	try {
		mkdirSync(paths.folder, { recursive: true, mode: 0o700 });
		// A folder made by somebody else, or under an odd umask, may be open to all.
		chmodSync(paths.folder, 0o700);
		const { default: Conf } = await import('conf');
		return new Conf<Record<string, unknown>>({
			cwd: paths.folder,
			configName: basename(file, '.json'),
			configFileMode: 0o600,
			clearInvalidConfig: false,
			accessPropertiesByDotNotation: false,
			projectName: 'mailctl',
		});
	} catch (cause) {
		throw new ConfigError(`${file} cannot be written`, { cause });
	}
}
