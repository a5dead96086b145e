import { resolve } from 'node:path';
import { isPostgres, shownDatabase } from '../../store/url.js';
import { type ConfigFile, type Profile, readConfig } from '../config/config.js';
import {
	confirmProtected,
	knownKey,
	newName,
	parsePreference,
	sayDropped,
	spokenOf,
	tokenState,
} from '../config/profiles.js';
import { assertDatabaseName, builtIn, checkSetting, findProfile, remoteTarget } from '../config/target.js';
import { type CommandGroup, command, kebab } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { answers, type Columns, column } from '../render/columns.js';
import { askUrl } from './login.js';

type Shown = ReturnType<typeof shown>;

const columns: Columns<Shown> = [
	column('name', 'NAME', { isName: true }),
	column('is_default', 'DEFAULT', { value: ({ is_default }) => (is_default ? '*' : '') }),
	column('base_url', 'BASE URL'),
	column('db', 'DATABASE'),
	column('token', 'TOKEN'),
	column('protected', 'PROTECTED', { isOptional: true, value: (one) => (one.protected ? true : '') }),
];

const preferences = ['output', 'color', 'timeout', 'retries', 'list', 'timeZone', 'allowRecipients'] as const;
type Preferences = Record<(typeof preferences)[number], unknown>;

const whole: Columns<Shown & Preferences> = [
	...columns,
	...preferences.map((key) => ({
		key,
		header: kebab(key).replace('-', ' ').toUpperCase(),
		value: (one: Preferences) => one[key],
	})),
];

const named = { name: 'name', summary: 'the name of a profile' } as const;
const newArg = { ...named, ask: 'Name of the profile:' } as const;
const nameArg = { ...named, of: 'profile', ask: 'Which profile:' } as const;
const storedArg = { ...nameArg, of: 'stored profile' } as const;

const changing = { writes: true, profiles: true, reach: [], exits: [78] } as const;

const list = command({
	name: 'list',
	summary: 'list profiles',
	profiles: true,
	reach: [],
	columns,
	output:
		'an array of {"name", "is_default", "base_url", "db", "token", "protected"}; "token" is "set", "not set" or null',
	exits: [78],
	examples: ['mailctl profile list'],
	run: async (cx) => {
		const config = readConfig(cx.paths);
		const names = new Set([builtIn, ...Object.keys(config.profiles)]);
		const rows = [...names].map((name) => shown(cx, config, name));
		await cx.out.rows(rows, columns, { all: true });
		if (config.profile !== null && !names.has(config.profile))
			await cx.warn(`unknown default profile "${config.profile}"`, mailctl('profile', 'use', 'NAME'));
	},
});

const show = command({
	name: 'show',
	summary: 'show one profile',
	args: [{ ...nameArg, summary: 'a profile; without one, the profile in use', optional: true }],
	profiles: true,
	reach: ['profile'],
	columns: whole,
	output: 'the profile with its preferences; the token is "set", "not set" or null',
	exits: [78],
	examples: ['mailctl profile show', 'mailctl profile show local -o json'],
	run: async (cx, { args }) => {
		const config = readConfig(cx.paths);
		const name = spokenOf(cx, args.name);
		const profile = findProfile(config, name);
		const set = Object.fromEntries(preferences.map((key) => [key, profile[key] ?? null])) as Preferences;
		await cx.out.record({ ...shown(cx, config, name), ...set }, whole);
	},
});

const add = command({
	name: 'add',
	summary: 'add a profile for a service or a database',
	description:
		'Give --base-url URL for a service, or --db PATH for a database. "login" adds the token of a service.',
	args: [newArg],
	options: {
		set: { kind: 'pairs', summary: 'set a preference (see config set): timeout=1m' },
		protected: { kind: 'flag', summary: 'ask before every change' },
		allowRecipients: {
			kind: 'list',
			placeholder: 'GLOB',
			summary: 'allow only these recipients: *@example.com',
		},
		use: { kind: 'flag', summary: 'make it the default profile' },
	},
	writes: true,
	profiles: true,
	reach: ['baseUrl', 'db'],
	columns,
	output: 'the profile',
	exits: [78],
	examples: [
		'mailctl profile add prod --base-url https://mail.example.com --protected',
		"mailctl profile add trial --db news.db --allow-recipients '*@example.com' --set timeout=1m --use",
	],
	run: async (cx, { args, options }) => {
		const config = readConfig(cx.paths);
		const name = newName(config, args.name);
		const isMissing = cx.globals.baseUrl === undefined && cx.globals.db === undefined;
		const target = targetOf(isMissing && cx.canAsk ? { baseUrl: await askUrl(cx) } : cx.globals, name);
		const profile: Profile = {
			...target,
			...preferencesOf(options.set),
			...(options.protected && { protected: true }),
			...(options.allowRecipients.length > 0 && { allowRecipients: options.allowRecipients }),
		};
		if (cx.dryRun) return cx.wouldDo(`add the profile "${name}"`, { create: { name, ...profile } });
		const write = await import('../config/config-write.js');
		const { use: isDefault } = options;
		// Prepare the output before the write, because a later failure would look as if the profile was not added.
		const profiles = { ...config.profiles, [name]: profile };
		const record = shown(cx, { profile: isDefault ? name : config.profile, profiles }, name);
		await sayDropped(cx, name, await write.changeProfile(cx.paths, name, { ...profile }, { isDefault }));
		await cx.out.record(record, columns);
		if (record.token === 'not set') await cx.hint(mailctl('login', '--profile', name));
	},
});

const use = command({
	name: 'use',
	summary: 'make a profile the default',
	args: [{ ...nameArg, summary: 'a profile; local is the local database' }],
	...changing,
	columns,
	output: 'the profile',
	examples: ['mailctl profile use local'],
	run: async (cx, { args }) => {
		findProfile(readConfig(cx.paths), args.name);
		if (cx.dryRun) return cx.wouldDo(`use the profile "${args.name}"`, { use: args.name });
		const { changeDefaultProfile } = await import('../config/config-write.js');
		await changeDefaultProfile(cx.paths, args.name);
		await cx.out.record(shown(cx, readConfig(cx.paths), args.name), columns);
	},
});

const rename = command({
	name: 'rename',
	summary: 'rename a profile; its token moves with it',
	args: [storedArg, { ...newArg, name: 'new-name', summary: 'the new name', ask: 'New name:' }],
	...changing,
	columns,
	output: 'the profile',
	examples: ['mailctl profile rename prod production'],
	run: async (cx, { args }) => {
		const config = readConfig(cx.paths);
		const profile = stored(config, args.name, 'renamed');
		const name = newName(config, args['new-name']);
		await confirmProtected(cx, args.name, profile);
		const what = `rename the profile "${args.name}" to "${name}"`;
		if (cx.dryRun) return cx.wouldDo(what, { update: args.name, with: { name } });
		const { renameProfile } = await import('../config/config-write.js');
		await renameProfile(cx.paths, args.name, name);
		await cx.out.record(shown(cx, readConfig(cx.paths), name), columns);
	},
});

const remove = command({
	name: 'remove',
	summary: 'remove a profile and its token',
	description: 'The default profile cannot be removed: use another one first.',
	args: [storedArg],
	...changing,
	severity: 'mild',
	...answers({ removed: 'name' }),
	examples: ['mailctl profile remove prod --yes'],
	run: async (cx, { args }) => {
		const config = readConfig(cx.paths);
		const { baseUrl, db } = stored(config, args.name, 'removed');
		if (config.profile === args.name)
			throw new UsageError(`"${args.name}" is the default profile`, {
				hint: [mailctl('profile', 'use', builtIn), ', then remove it'],
			});
		if (cx.dryRun) return cx.wouldDo(`remove the profile "${args.name}"`, { delete: [args.name] });
		await cx.confirm({
			kind: 'mild',
			what: `remove the profile "${args.name}" (${baseUrl ?? (db === undefined ? 'no target' : shownDatabase(db))})`,
		});
		const { removeProfile } = await import('../config/config-write.js');
		await removeProfile(cx.paths, args.name);
		await cx.out.document({ removed: args.name }, `removed the profile "${args.name}"`);
	},
});

export const group: CommandGroup = {
	name: 'profile',
	aliases: ['profiles'],
	summary: 'manage stored services and databases',
	examples: [
		'mailctl profile add prod --base-url https://mail.example.com --protected',
		'mailctl profile use local',
		'mailctl profile list',
	],
	commands: [list, show, add, use, rename, remove],
};

function shown(cx: CommandContext, config: ConfigFile, name: string) {
	const profile = findProfile(config, name);
	const { baseUrl = null, db = null } = profile;
	return {
		...{ name, is_default: (config.profile ?? builtIn) === name, base_url: baseUrl },
		db: db === null ? (baseUrl === null && name === builtIn ? cx.paths.database : null) : shownDatabase(db),
		token: tokenState(cx, name, profile),
		protected: profile.protected === true,
	};
}

function stored(config: ConfigFile, name: string, done: string): Profile {
	const profile = findProfile(config, name);
	if (name !== builtIn) return profile;
	throw new UsageError(`"${builtIn}" is built in and cannot be ${done}`);
}

function targetOf({ baseUrl, db }: CommandContext['globals'], name: string): Profile {
	if (baseUrl !== undefined && db !== undefined)
		throw new UsageError('use either --base-url or --db, not both');
	if (baseUrl !== undefined) remoteTarget(baseUrl, '--base-url');
	if (baseUrl !== undefined) return { baseUrl };
	if (db === '') throw new UsageError('--db is empty');
	if (db !== undefined) assertDatabaseName(db, '--db');
	if (db !== undefined) return { db: isPostgres(db) ? db : resolve(db) };
	const add = ['profile', 'add', name] as const;
	throw new UsageError('missing --base-url or --db', {
		hint: [mailctl(...add, '--base-url', 'URL'), ' or ', mailctl(...add, '--db', 'PATH')],
	});
}

function preferencesOf(pairs: Readonly<Record<string, string>>): Record<string, unknown> {
	return Object.fromEntries(
		Object.entries(pairs).map(([word, text]) => {
			const key = knownKey(word, [...preferences, 'protected'], '--set: ');
			checkSetting(key, text, {}, '');
			return [key, parsePreference(key, text)];
		}),
	);
}
