/** `mailctl engine`: the database of this machine and its mail server. */

import { need } from '../../api/capabilities.js';
import type { Sender } from '../../api/records.js';
import { type Command, type CommandGroup, command } from '../command.js';
import { commandLine } from '../command-line.js';
import type { EngineStatus } from '../connection.js';
import type { CommandContext } from '../context.js';
import { CliError, UsageError } from '../errors.js';
import { exits } from '../exit.js';
import { explained, type Refused } from '../refusals.js';
import { type Columns, column } from '../render/columns.js';
import { walk } from '../walk.js';
import { bounces } from './engine/bounces.js';
import { dkim } from './engine/dkim.js';
import { queue } from './engine/queue.js';
import { tokens } from './engine/tokens.js';

const initOptions = {
	sender: { kind: 'text', placeholder: 'address', summary: 'a verified sender' },
	smtp: { kind: 'text', placeholder: 'URL', summary: 'the mail server: smtp[s]://user@host:port' },
	smtpPasswordFile: { kind: 'file', summary: 'the password of that user, from a file' },
	publicUrl: {
		kind: 'text',
		placeholder: 'URL',
		summary: 'where recipients reach this service; links start with it',
	},
	bounceAddress: {
		kind: 'text',
		placeholder: 'address',
		summary: 'where bounces come back to: bounces@example.com',
	},
	timeZone: { kind: 'text', placeholder: 'ZONE', summary: 'whose days the report counts: Europe/Oslo' },
} as const;

const init = command({
	name: 'init',
	summary: 'make the database, or change what is given',
	options: initOptions,
	writes: true,
	createsDatabase: true,
	output: '{"path", "created", "settings", "sender"}',
	exits: [5, 74],
	examples: [
		'mailctl engine init --sender news@example.com --smtp smtp://127.0.0.1:2525',
		'mailctl --db news.db engine init --smtp smtps://news@mail.example.com --smtp-password-file smtp.pass --public-url https://mail.example.com',
	],
	run: async (cx, { options }) => {
		const values = {
			...(options.smtp !== undefined && { smtp_url: options.smtp }),
			...(options.smtpPasswordFile !== undefined && {
				smtp_password: withoutLineEnd(await options.smtpPasswordFile.text()),
			}),
			...(options.publicUrl !== undefined && { public_url: options.publicUrl }),
			...(options.bounceAddress !== undefined && { bounce_address: options.bounceAddress }),
			...(options.timeZone !== undefined && { time_zone: options.timeZone }),
		};
		if (cx.dryRun)
			return cx.wouldDo('set up the database', {
				settings: Object.keys(values),
				sender: options.sender ?? null,
			});
		if (options.sender !== undefined) await assertAddress(options.sender);
		const engine = await cx.local();
		const created = engine.isNew;
		const hasChange = options.sender !== undefined || Object.keys(values).length > 0;
		await explained(engine.settings.set(values), { input: values, hint: settingHint });
		const sender = options.sender === undefined ? null : await addSender(cx, options.sender);
		const settings = await engine.settings.get();
		await cx.out.document(
			{ path: engine.path, created, settings, sender },
			sentenceOf(engine.path, created ? 'made' : hasChange ? 'changed' : 'kept'),
		);
		if (settings['smtp_url'] === undefined)
			await cx.hint(`no mail server yet: ${commandLine(cx, 'engine init --smtp smtp://user@host:587')}`);
		else if (Object.keys(values).includes('smtp_url'))
			await cx.hint(`${commandLine(cx, 'engine smtp-test')} tries the mail server`);
	},
});

const statusColumns: Columns<EngineStatus> = [
	column('path', 'DATABASE'),
	column('schema_version', 'SCHEMA'),
	column('size_bytes', 'BYTES'),
	column('lists', 'LISTS'),
	column('subscribers', 'SUBSCRIBERS'),
	column('suppressions', 'SUPPRESSIONS'),
	{
		key: 'messages',
		header: 'MESSAGES',
		value: ({ messages }) =>
			Object.entries(messages)
				.map(([state, count]) => `${state} ${count}`)
				.join(', '),
	},
	column('senders', 'SENDERS'),
	column('smtp_url', 'MAIL SERVER'),
	column('public_url', 'PUBLIC URL'),
	column('time_zone', 'TIME ZONE'),
];

const status = command({
	name: 'status',
	summary: 'what is in the database, and how it is set up',
	columns: statusColumns,
	output:
		'{"path", "schema_version", "size_bytes", "lists", "subscribers", "suppressions", "messages", "senders", "smtp_url", "public_url", "time_zone"}',
	examples: ['mailctl engine status', 'mailctl engine status -o json'],
	run: async (cx) => cx.out.record(await (await cx.local()).status(), statusColumns),
});

const smtpTest = command({
	name: 'smtp-test',
	summary: 'connect to the mail server and log in; nothing is sent',
	output: '{"host", "port", "security", "user", "ok", "reply", "duration_ms"}',
	exits: [6],
	examples: ['mailctl engine smtp-test'],
	run: async (cx) => {
		const engine = await cx.local();
		if ((await engine.status()).smtp_url === null) {
			throw new UsageError('no mail server is configured', {
				hint: commandLine(cx, 'engine init --smtp smtp://user@host:587'),
			});
		}
		const test = await engine.testSmtp();
		const server = `${test.host}:${test.port}`;
		if (test.ok) return cx.out.document(test, `${server} takes mail from here (${test.duration_ms} ms)`);
		if (cx.out.format === 'json') await cx.out.document(test);
		// The phase and the system's own words may say the same thing twice.
		const reply = (test.reply ?? 'no answer').replace(/^(?:(\w+): (?=\1\b))+/, '');
		throw new CliError('smtp', exits.network, `${server}: ${reply}`, {
			hint: `${commandLine(cx, 'engine init --smtp URL')} names another mail server`,
			retryable: true,
		});
	},
});

interface Setting {
	name: string;
	value: string | null;
	meaning: string;
}

const settingColumns: Columns<Setting> = [
	column('name', 'SETTING', { isName: true }),
	column('value', 'VALUE'),
	column('meaning', 'MEANING', { wide: true }),
];

const getSetting = command({
	name: 'get',
	summary: 'show the settings, or one of them',
	args: [{ name: 'setting', summary: 'its name', optional: true }],
	columns: settingColumns,
	output: 'an array of {"name", "value", "meaning"}, or the one asked for; secrets masked',
	examples: ['mailctl engine settings get', 'mailctl engine settings get public_url -o tsv --fields value'],
	run: async (cx, { args }) => {
		const { settings } = await cx.local();
		const values = await settings.get();
		const all = Object.entries(settings.names).map(([name, meaning]) => ({
			name,
			value: values[name] ?? null,
			meaning,
		}));
		if (args.setting === undefined) {
			await cx.out.rows(all, settingColumns, { all: true });
			return;
		}
		const one = all.find(({ name }) => name === args.setting);
		if (one === undefined) throw unknownSetting(args.setting, all);
		await cx.out.record(one, settingColumns);
	},
});

const setSetting = command({
	name: 'set',
	summary: 'change a setting',
	args: [
		{ name: 'setting', summary: 'its name' },
		{ name: 'value', summary: 'its new value; - reads standard input' },
	],
	writes: true,
	output: '{"name", "value"}',
	exits: [5],
	examples: [
		'mailctl engine settings set time_zone Europe/Oslo',
		"mailctl engine settings set recipient_domain_limits 'gmail.com=100/1h, *=10/s'",
		'mailctl engine settings set smtp_ca - < ca.pem',
	],
	run: async (cx, { args }) => {
		const secret = args.setting === 'smtp_password';
		if (secret && args.value !== '-') {
			throw new UsageError('a password is no argument: others on this machine see them', {
				hint: 'mailctl engine settings set smtp_password - < FILE',
			});
		}
		const value =
			args.value === '-' ? withoutLineEnd(await cx.sources.file('-', 'value').text()) : args.value;
		if (cx.dryRun) return cx.wouldDo(`set ${args.setting}`, { name: args.setting });
		const engine = await cx.local();
		const values = { [args.setting]: value };
		await explained(engine.settings.set(values), { input: values, hint: settingHint });
		const stored = (await engine.settings.get())[args.setting] ?? null;
		await cx.out.document({ name: args.setting, value: stored }, `${args.setting} is ${stored ?? 'unset'}`);
	},
});

const unsetSetting = command({
	name: 'unset',
	summary: 'return a setting to its default',
	args: [{ name: 'setting', summary: 'its name' }],
	writes: true,
	output: '{"name", "value": null}',
	exits: [5],
	examples: ['mailctl engine settings unset public_url'],
	run: async (cx, { args }) => {
		if (cx.dryRun) return cx.wouldDo(`unset ${args.setting}`, { name: args.setting });
		await (await cx.local()).settings.set({ [args.setting]: null });
		await cx.out.document({ name: args.setting, value: null }, `${args.setting} is unset`);
	},
});

const settings: CommandGroup = {
	name: 'settings',
	summary: 'settings of the database',
	commands: [getSetting, setSetting, unsetSetting],
};

export const group: CommandGroup = {
	name: 'engine',
	summary: 'the embedded engine: its database and mail server',
	commands: [init, status, settings, tokens, dkim, queue, bounces, smtpTest] satisfies (
		| Command
		| CommandGroup
	)[],
};

function sentenceOf(path: string, outcome: 'made' | 'changed' | 'kept'): string {
	return outcome === 'kept' ? `${path} is there already; nothing was changed` : `${outcome} ${path}`;
}

/** Before anything is stored: a wrong address must not leave the settings changed. */
async function assertAddress(email: string): Promise<void> {
	const { parseAddress } = await import('../../api/address.js');
	if (parseAddress(email) === null)
		throw new UsageError(`--sender: "${email}" is no e-mail address`, { hint: '--sender news@example.com' });
}

async function addSender(cx: CommandContext, email: string): Promise<Sender> {
	const senders = await need(await cx.api(), 'senders');
	const find = async () => {
		for await (const sender of walk(senders, {}, { signal: cx.signal })) {
			if (sender.email.toLowerCase() === email.toLowerCase()) return sender;
		}
		return null;
	};
	const known = await find();
	if (known !== null) return known;
	return explained(senders.create({ email }), { input: { email } }).catch(async (error: unknown) => {
		// Somebody else may have added it since.
		const added = await find();
		if (added === null) throw error;
		return added;
	});
}

function settingHint({ path }: Refused): string | undefined {
	if (path === 'smtp_url') return 'smtp://host:25, smtp://user@host:587 or smtps://user@host';
	return path === 'public_url' ? 'such as https://mail.example.com' : undefined;
}

function unknownSetting(name: string, all: readonly Setting[]): UsageError {
	return new UsageError(`there is no setting "${name}"`, {
		hint: `valid: ${all.map((one) => one.name).join(', ')}`,
	});
}

function withoutLineEnd(text: string): string {
	return text.replace(/\r?\n$/, '');
}
