import { shownDatabase } from '../../store/url.js';
import { type Profile, profileKeys, readConfig } from '../config/config.js';
import { knownKey, parsePreference, sayDropped } from '../config/profiles.js';
import { type Explained, explain } from '../config/settings.js';
import { checkSetting, findProfile } from '../config/target.js';
import { type CommandGroup, command, reachOptions } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { CliError } from '../frame/errors.js';
import { exits } from '../frame/exit.js';
import { isMachine } from '../frame/globals.js';
import { type Columns, column } from '../render/columns.js';

interface Row {
	key: string;
	value: unknown;
}

const columns: Columns<Row> = [column('key', 'KEY', { isName: true }), column('value', 'VALUE')];

const explained: Columns<Explained> = [
	column('key', 'KEY', { isName: true }),
	column('value', 'VALUE'),
	column('level', 'FROM'),
	column('source', 'SOURCE'),
];

type Key = keyof Profile | 'profile';
const keys = ['profile', ...Object.keys(profileKeys)] as Key[];

const keyArg = { name: 'key', summary: keys.join(', '), of: 'profile-key', ask: 'Which setting:' } as const;

const list = command({
	name: 'list',
	summary: 'list the settings of the profile',
	columns,
	reach: ['profile'],
	output: 'an array of {"key", "value"}',
	examples: ['mailctl config list'],
	run: async (cx) => {
		const { profile } = readConfig(cx.paths);
		const all = { ...(profile !== null && { profile }), ...profileOf(cx) };
		await cx.out.rows(rowsOf(all), columns);
	},
});

const get = command({
	name: 'get',
	summary: 'print a setting of the profile',
	args: [keyArg],
	columns,
	reach: ['profile'],
	output: '{"key", "value"}',
	exits: [3],
	examples: ['mailctl config set output json', 'mailctl config get output'],
	run: async (cx, { args }) => {
		const key = knownKey(args.key, keys);
		const value = shown(key === 'profile' ? (readConfig(cx.paths).profile ?? undefined) : profileOf(cx)[key]);
		if (value === undefined)
			throw new CliError('not_found', exits.notFound, `${key} is not set`, {
				hint: mailctl('config', 'list'),
			});
		if (isMachine(cx.out.format) || cx.globals.fields !== undefined)
			return cx.out.record({ key, value }, columns);
		return cx.out.raw(`${Array.isArray(value) ? value.join(',') : String(value)}\n`);
	},
});

const set = command({
	name: 'set',
	summary: 'change a setting of the profile',
	args: [keyArg, { name: 'value', summary: 'the new value' }],
	columns,
	writes: true,
	reach: ['profile'],
	output: '{"key", "value"}',
	exits: [78],
	examples: ['mailctl config set timeout 1m', 'mailctl config set allowRecipients "*@example.com"'],
	run: async (cx, { args }) => {
		const key = knownKey(args.key, keys);
		const value = key === 'profile' ? args.value : parsePreference(key, args.value);
		const text = typeof value === 'string' ? value : args.value.trim();
		if (key === 'profile') findProfile(readConfig(cx.paths), text);
		else checkSetting(key, text, profileOf(cx), cx.settings.target.settingsOf);
		if (cx.dryRun)
			return cx.wouldDo(`set ${key} to ${shown(text)}`, { set: key, with: { value: shown(value) } });
		await change(cx, key, value);
		return cx.out.document({ key, value: shown(value) }, `${key} = ${shown(text)}`);
	},
});

const unset = command({
	name: 'unset',
	summary: 'remove a setting of the profile',
	args: [keyArg],
	columns,
	writes: true,
	reach: ['profile'],
	output: '{"key", "value": null}',
	exits: [78],
	examples: ['mailctl config unset timeout'],
	run: async (cx, { args }) => {
		const key = knownKey(args.key, keys);
		if (cx.dryRun) return cx.wouldDo(`unset ${key}`, { unset: key });
		await change(cx, key, undefined);
		return cx.out.document({ key, value: null }, `${key} is no longer set`);
	},
});

const path = command({
	name: 'path',
	summary: 'show where files are stored',
	columns,
	reach: [],
	needsNoTarget: true,
	output: 'an array of {"key", "value"}',
	examples: ['mailctl config path'],
	run: async (cx) => {
		await cx.out.rows(rowsOf(cx.paths), columns);
	},
});

const explainCommand = command({
	name: 'explain',
	summary: 'show every setting and where it comes from',
	columns: explained,
	reach: reachOptions,
	needsNoConfig: true,
	output: 'an array of {"key", "value", "level", "source"}; a token is never shown',
	examples: ['mailctl config explain', 'MAILCTL_OUTPUT=csv mailctl config explain'],
	run: async (cx) => {
		await cx.out.rows(explain(cx.settings, cx.globals, cx.io.env, cx.paths), explained, { all: true });
	},
});

export const group: CommandGroup = {
	name: 'config',
	summary: 'manage settings of profiles',
	examples: ['mailctl config set timeout 1m', 'mailctl config explain'],
	commands: [list, get, set, unset, path, explainCommand],
};

async function change(cx: CommandContext, key: Key, value: unknown): Promise<void> {
	const write = await import('../config/config-write.js');
	if (key === 'profile')
		return write.changeDefaultProfile(cx.paths, value === undefined ? null : String(value));
	const name = cx.settings.target.settingsOf;
	await sayDropped(cx, name, await write.changeProfile(cx.paths, name, { [key]: value }));
}

function rowsOf(values: object): Row[] {
	return Object.entries(values).map(([key, value]) => ({ key, value: shown(value) }));
}

function shown(value: unknown): unknown {
	return typeof value === 'string' ? shownDatabase(value) : value;
}

function profileOf(cx: CommandContext): Profile {
	return cx.settings.target.settings;
}
