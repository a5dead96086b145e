import { type CommandGroup, command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { LocalEngine } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { isTable } from '../../frame/globals.js';
import { didYouMean } from '../../frame/words.js';
import { clean } from '../../render/clean.js';
import { answers, type Columns, column } from '../../render/columns.js';
import { explained, type Refusal, type Refused } from '../../verbs/refusals.js';
import { whatGoes } from '../../verbs/retention.js';

interface Setting {
	name: string;
	value: string | null;
	default: string | null;
	meaning: string;
}

const columns: Columns<Setting> = [
	column('name', 'SETTING', { isName: true }),
	column('value', 'VALUE'),
	column('default', 'DEFAULT', { wide: true }),
	column('meaning', 'MEANING', { wide: true }),
];

const get = command({
	name: 'get',
	aliases: ['list', 'ls'],
	summary: 'show the settings, or one of them',
	description:
		'A terminal shows each setting with its purpose. A pipe gets only the stored value of the named setting.',
	args: [{ name: 'setting', summary: 'the name of the setting', optional: true, of: 'setting' }],
	columns,
	output:
		'an array of {"name", "value", "default", "meaning"}, or one object for a named setting; secrets are masked',
	examples: ['mailctl engine settings get', 'mailctl engine settings get public_url'],
	run: async (cx, { args }) => {
		const engine = await cx.local();
		const { format } = cx.out;
		const { setting } = args;
		if (setting !== undefined) assertSetting(engine, setting);
		const { names, defaults } = engine.settings;
		const values = await engine.settings.get();
		const found = Object.entries(names)
			.filter(([name]) => (setting ?? name) === name)
			.map(([name, meaning]) => ({
				...{ name, value: values[name] ?? null, default: defaults[name] ?? null, meaning },
			}));
		const isPlain = cx.globals.fields === undefined;
		if (isPlain && format === 'table') return cx.out.raw(await page(cx, found));
		// Without `--output`, TSV means that stdout is a pipe, so print the bare value: `ca=$(mailctl engine settings get
		// smtp_ca)`.
		const isBare = isPlain && format === 'tsv' && cx.settings.output.value === null;
		if (isBare && setting !== undefined) return cx.out.raw(`${found[0]?.value ?? ''}\n`);
		const inLine = ({ value, ...each }: Setting) => ({ ...each, value: value && inALine(value) });
		const shown = isTable(format) ? found.map(inLine) : found;
		const [only] = shown;
		if (setting !== undefined && only !== undefined) await cx.out.record(only, columns);
		else await cx.out.rows(shown, columns, { all: true });
	},
});

const set = command({
	name: 'set',
	summary: 'change a setting',
	description:
		'A shorter keep_messages, keep_events or keep_bodies may delete data: mailctl asks first, unless --yes is given.',
	args: [
		{ name: 'setting', summary: 'the name of the setting', of: 'setting', ask: 'Which setting:' },
		{
			name: 'value',
			summary: 'the new value, or - for standard input',
			ask: 'New value:',
			secret: whyNoArgument,
			whyNot: async (cx: CommandContext, typed: string, { setting }: { setting?: unknown }) =>
				typed === '-' ? null : (await cx.local()).settings.whyNot(String(setting), typed),
		},
	],
	writes: true,
	...answers(['name', 'value']),
	examples: [
		'mailctl engine settings set time_zone Europe/Oslo',
		"mailctl engine settings set recipient_domain_limits 'gmail.com=100/h, *=10/s'",
		'mailctl engine settings set smtp_ca - < ca.pem',
		"mailctl engine settings set page_color '#0b6e4f'",
		'mailctl engine settings set keep_messages 400d',
	],
	run: async (cx, { args }) => {
		const engine = await cx.local();
		assertSetting(engine, args.setting);
		const value =
			args.value === '-' ? withoutLineEnd(await cx.sources.file('-', 'value').text()) : args.value;
		const values = { [args.setting]: value };
		await agreeToLess(cx, engine, values);
		await explained(engine.settings.set(values), ofSettings(values));
		if (cx.dryRun) {
			const shown =
				whyNoArgument(args) === null ? await engine.settings.normalOf(args.setting, value) : '********';
			return cx.wouldDo(`set ${args.setting}`, { set: args.setting, with: { value: shown } });
		}
		const stored = (await engine.settings.get())[args.setting] ?? null;
		const shown = stored === null ? 'unset' : inALine(stored);
		await cx.out.document({ name: args.setting, value: stored }, `${args.setting} is ${shown}`);
	},
});

const unset = command({
	name: 'unset',
	summary: 'return a setting to its default',
	args: [{ name: 'setting', summary: 'the name of the setting', of: 'setting', ask: 'Which setting:' }],
	writes: true,
	...answers({ name: '', value: 'null' }),
	examples: ['mailctl engine settings unset public_url'],
	run: async (cx, { args }) => {
		const engine = await cx.local();
		assertSetting(engine, args.setting);
		await engine.settings.set({ [args.setting]: null });
		if (cx.dryRun) return cx.wouldDo(`unset ${args.setting}`, { unset: args.setting });
		await cx.out.document({ name: args.setting, value: null }, `${args.setting} is unset`);
	},
});

export const settings: CommandGroup = {
	name: 'settings',
	summary: 'show and change the settings of the database',
	examples: ['mailctl engine settings get', 'mailctl engine settings set time_zone Europe/Oslo'],
	commands: [get, set, unset],
};

type Values = Readonly<Record<string, string | null>>;

export async function agreeToLess(cx: CommandContext, engine: LocalEngine, values: Values): Promise<void> {
	const what = await whatGoes(engine, values);
	if (what === null) return;
	if (cx.dryRun) await cx.note(`This would ${what}.`);
	else await cx.confirm({ kind: 'mild', what });
}

function whyNoArgument({ setting }: { setting?: unknown }): UsageError | null {
	if (setting !== 'smtp_password') return null;
	return new UsageError('a password cannot be an argument, because other users can see arguments', {
		hint: [mailctl('engine', 'settings', 'set', 'smtp_password', '-'), ' < FILE'],
	});
}

export function ofSettings(values: Values): Refusal {
	return { input: values, hint: settingHint, exit: exits.usage };
}

function settingHint({ path }: Refused): string | undefined {
	if (path === 'smtp_url') return 'smtp://HOST:25, smtp://USER@HOST:587 or smtps://USER@HOST';
	return path === 'public_url' ? 'https://HOST' : undefined;
}

export function withoutLineEnd(text: string): string {
	return text.replace(/\r?\n$/, '');
}

async function page(cx: CommandContext, all: readonly Setting[]): Promise<string> {
	const { wrap } = await import('../../render/width.js');
	const { stdout } = cx.io;
	const width = stdout.isTTY ? stdout.columns : Number.POSITIVE_INFINITY;
	const blocks = all.flatMap((setting) => [
		`${setting.name}${worth(setting)}`,
		...wrap(setting.meaning, Math.max(width - indent.length, 20)).map((line) => `${indent}${line}`),
	]);
	return `${blocks.join('\n')}\n`;
}

const indent = '    ';

function worth({ value, default: standard }: Setting): string {
	if (value !== null) return ` = ${inALine(value)}`;
	return standard === null ? ' is not set' : ` = ${standard} (default)`;
}

/** Shows the first line of a certificate, and cuts data URLs, which may have thousands of characters. */
function inALine(value: string): string {
	const end = value.startsWith('data:') ? value.indexOf(',') + 1 : value.indexOf('\n');
	return end <= 0 ? clean(value) : `${clean(value.slice(0, end))}…`;
}

function assertSetting({ settings }: LocalEngine, name: string): void {
	const names = Object.keys(settings.names);
	if (names.includes(name)) return;
	const hint = didYouMean(name, names) ?? `valid: ${names.join(', ')}`;
	throw new UsageError(`unknown setting "${name}"`, { hint });
}
