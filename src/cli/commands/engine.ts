/** `mailctl engine`: the database of this machine and its mail server. */

import { need } from '../../api/capabilities.js';
import type { Sender } from '../../api/records.js';
import { type Command, type CommandGroup, command } from '../command.js';
import type { CommandContext } from '../context.js';
import { CliError, UsageError } from '../errors.js';
import { exits } from '../exit.js';
import { explained } from '../refusals.js';
import { walk } from '../walk.js';
import { bounces } from './engine/bounces.js';
import { dkim } from './engine/dkim.js';
import { queue } from './engine/queue.js';
import { settingHint, settings, withoutLineEnd } from './engine/settings.js';
import { status } from './engine/status.js';
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
			await cx.hint('no mail server yet: mailctl engine init --smtp smtp://user@host:587');
		else if (options.smtp !== undefined) {
			await warnOfPassword(cx, settings);
			await cx.hint('mailctl engine smtp-test tries the mail server');
		}
	},
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
				hint: 'mailctl engine init --smtp smtp://user@host:587',
			});
		}
		const test = await engine.testSmtp();
		const server = `${test.host}:${test.port}`;
		if (test.ok) return cx.out.document(test, `${server} takes mail from here (${test.duration_ms} ms)`);
		if (cx.out.format === 'json') await cx.out.document(test);
		const reply = test.reply ?? 'no answer';
		throw new CliError('smtp', exits.network, `${server}: ${reply}`, {
			hint: howToMend(reply),
			retryable: true,
		});
	},
});

export const group: CommandGroup = {
	name: 'engine',
	summary: 'the embedded engine: its database and mail server',
	commands: [init, status, settings, tokens, dkim, queue, bounces, smtpTest] satisfies (
		| Command
		| CommandGroup
	)[],
};

/** What is wrong with TLS names the setting that mends it. */
function howToMend(reply: string): string {
	const settingUrl = (url: string) => `mailctl engine settings set smtp_url ${url}`;
	if (/^tls: the server offers no STARTTLS/.test(reply)) return settingUrl('smtps://user@host:465');
	const setting = /^tls: .*?\b(smtp_ca|smtp_url)\b/.exec(reply)?.[1];
	if (setting === 'smtp_ca') return 'mailctl engine settings set smtp_ca - < ca.pem';
	if (setting === 'smtp_url') return settingUrl('smtp://user@host:587');
	return 'mailctl engine init --smtp URL names another mail server';
}

/** A user without a password logs in nowhere, and the first mail would be the one to say so. */
async function warnOfPassword(cx: CommandContext, settings: Readonly<Record<string, string>>): Promise<void> {
	const url = settings['smtp_url'] ?? '';
	const user = URL.canParse(url) ? new URL(url).username : '';
	if (user === '' || settings['smtp_password'] !== undefined) return;
	await cx.warn('no password is set for the user of the mail server');
	await cx.hint('mailctl engine init --smtp-password-file FILE sets it');
}

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
