import { emailKey, type Mailbox, parseMailbox } from '../../api/address.js';
import type { Sender } from '../../api/records.js';
import { type CommandGroup, command, type OptionValues } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { LocalEngine } from '../frame/connection.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, UsageError } from '../frame/errors.js';
import { exits } from '../frame/exit.js';
import { given } from '../frame/values.js';
import { answers } from '../render/columns.js';
import { walk } from '../verbs/listing.js';
import { acceptance, explained, remedyFor, smtpRefusal } from '../verbs/refusals.js';
import { backup, check, restore } from './engine/backup.js';
import { bounces } from './engine/bounces.js';
import { dkim } from './engine/dkim.js';
import { migrate } from './engine/migrate.js';
import { secrets } from './engine/secrets.js';
import { agreeToLess, ofSettings, settings, withoutLineEnd } from './engine/settings.js';
import { queue, status } from './engine/status.js';
import { tokens } from './engine/tokens.js';

const initOptions = {
	sender: { kind: 'text', placeholder: 'ADDRESS', summary: 'add this verified sender' },
	smtp: {
		kind: 'text',
		placeholder: 'URL',
		summary: 'send through this mail server, smtp[s]://USER@HOST:PORT',
	},
	smtpPasswordFile: { kind: 'file', summary: 'read the password of the mail server from a file' },
	publicUrl: { kind: 'text', placeholder: 'URL', summary: 'use this URL at the start of links in mails' },
	bounceAddress: { kind: 'text', placeholder: 'ADDRESS', summary: 'receive bounces at this address' },
	keepMessages: {
		kind: 'text',
		placeholder: 'DAYS',
		summary: 'delete finished messages after this time, such as 400d; none keeps all',
	},
} as const;

const init = command({
	name: 'init',
	summary: 'create the database, or change its settings',
	description:
		'On a terminal and without options, the command asks for each setting, tests the mail server, and reports ' +
		'missing DNS records. The global option --time-zone sets the time zone of the days in reports.',
	options: initOptions,
	writes: true,
	createsDatabase: true,
	...answers(['path', 'created', 'settings', 'sender']),
	exits: [74],
	examples: [
		'mailctl engine init --sender news@example.com --smtp smtp://127.0.0.1:2525',
		'mailctl --db news.db engine init --smtp smtps://news@mail.example.com --smtp-password-file smtp.pass --public-url https://mail.example.com',
	],
	run: async (cx, { options: typed }) => {
		const isAsked = cx.canAsk && Object.values(typed).every((value) => value === undefined);
		const guided = isAsked ? await (await import('./engine/guide.js')).guideInit(cx) : null;
		const options = guided === null ? typed : { ...typed, sender: guided.sender };
		const values: Record<string, string | null> = {
			...guided?.values,
			...(await settingsOf(options)),
			...given({ time_zone: cx.globals.timeZone && cx.timeZone() }),
		};
		const mailbox = await senderOf(options.sender);
		const { assertSettings } = await import('../connect/local.js');
		await explained(assertSettings(values), ofSettings(values));
		const engine = await cx.local();
		const { isNew: created, path, settings } = engine;
		if (await isPageName(settings, mailbox?.name ?? '')) values['page_sender_name'] = mailbox?.name ?? null;
		await agreeToLess(cx, engine, values);
		await explained(settings.set(values), ofSettings(values));
		const sender = mailbox === null ? null : await addSender(cx, mailbox);
		const shown: Record<string, string | null> = {};
		for (const [name, value] of Object.entries(values))
			shown[name] = value === null ? null : await settings.normalOf(name, value);
		if ('smtp_password' in values) shown['smtp_password'] = '********';
		// In a dry run, the writes above only validate the values: the store rolls them back.
		if (cx.dryRun) {
			const plan = { settings: shown, sender: mailbox?.address ?? null };
			return cx.wouldDo(`${created ? 'create' : 'change'} ${path}`, { init: path, with: plan, created });
		}
		const stored = await settings.get();
		const said = created ? `created ${path}` : changedTo(path, shown, mailbox);
		await cx.out.document({ path, created, settings: stored, sender }, said);
		if (guided !== null) {
			await cx.hint(['to repeat this without questions: ', guided.command]);
			return (await import('./engine/guide.js')).sayDns(cx);
		}
		if (stored['smtp_url'] === undefined)
			await cx.hint(['no mail server is set: ', mailctl('engine', 'init', '--smtp', 'smtp://USER@HOST:587')]);
		else if (options.smtp !== undefined)
			await cx.hint([mailctl('engine', 'smtp-test'), ' tests the mail server']);
	},
});

type Changed = Readonly<Record<string, string | null>>;

function changedTo(path: string, settings: Changed, mailbox: Mailbox | null): string {
	const changed = { ...settings, ...(mailbox !== null && { sender: mailbox.address }) };
	const texts = Object.entries(changed).map(([name, value]) => `${name} ${value ?? 'unset'}`);
	if (texts.length === 0) return `${path} exists; nothing was changed`;
	return `changed ${path}: ${texts.join(', ')}`;
}

async function isPageName(settings: LocalEngine['settings'], name: string): Promise<boolean> {
	if (name === '' || (await settings.get())['page_sender_name'] !== undefined) return false;
	return (await settings.whyNot('page_sender_name', name)) === null;
}

async function settingsOf(options: OptionValues<typeof initOptions>) {
	const { smtpPasswordFile, keepMessages } = options;
	return given({
		smtp_url: options.smtp,
		smtp_password: smtpPasswordFile && withoutLineEnd(await smtpPasswordFile.text()),
		public_url: options.publicUrl,
		bounce_address: options.bounceAddress,
		keep_messages: keepMessages?.trim().toLowerCase() === 'none' ? null : keepMessages,
	});
}

async function senderOf(text: string | undefined): Promise<Mailbox | null> {
	if (text === undefined) return null;
	const { noAddress } = await import('../verbs/address-faults.js');
	const mailbox = parseMailbox(text);
	if (mailbox === null) throw new UsageError(`--sender: ${noAddress(text, 'mailbox')}`);
	return mailbox;
}

async function addSender(cx: CommandContext, { address, name }: Mailbox): Promise<Sender> {
	const { senders } = await cx.api();
	const find = async () => {
		for await (const sender of walk(senders, {}, { signal: cx.signal }))
			if (emailKey(sender.from_email) === emailKey(address)) return sender;
		return null;
	};
	const known = await find();
	if (known !== null)
		return name === '' || name === known.full_name ? known : senders.patch(known.id, { full_name: name });
	const input = { from_email: address, full_name: name };
	return explained(senders.create(input, { signal: cx.signal }), { input }).catch(async (error: unknown) => {
		// Another process may have added the sender meanwhile.
		const added = await find();
		if (added === null) throw error;
		return added;
	});
}

const smtpTest = command({
	name: 'smtp-test',
	summary: 'test the mail server without sending',
	description:
		'Connects, logs in, and sends MAIL FROM with the bounce address, or else the first sender. It ends after ' +
		'--timeout (30s).',
	output: '{"host", "port", "security", "user", "ok", "reply", "duration_ms", "ehlo_name", "sender"}',
	exits: [6],
	examples: ['mailctl engine smtp-test'],
	run: async (cx) => {
		const engine = await cx.local();
		const { value: timeoutMs } = cx.settings.timeoutMs;
		const timeout = AbortSignal.timeout(timeoutMs);
		const test = await engine.testSmtp(AbortSignal.any([cx.signal, timeout]));
		cx.signal.throwIfAborted();
		const { remedy, certificate, ...shown } = test;
		if (test.ok) return cx.out.document(shown, acceptance(test));
		if (cx.out.format === 'json') await cx.out.document(shown);
		const isLate = timeout.aborted;
		const late = `${test.host}:${test.port}: no answer within ${timeoutMs / 1000} s`;
		throw new CliError('smtp', exits.network, isLate ? late : smtpRefusal(test), {
			hint:
				isLate || remedy === null
					? [mailctl('engine', 'init', '--smtp', 'URL'), ' sets another mail server']
					: remedyFor(remedy),
			retryable: true,
		});
	},
});

export const group: CommandGroup = {
	name: 'engine',
	summary: 'manage the embedded engine, its database and mail server',
	examples: [
		'mailctl engine init --sender news@example.com --smtp smtp://127.0.0.1:2525',
		'mailctl engine status',
		'mailctl engine backup news-2026-11-01.db',
	],
	commands: [
		...[init, status, settings, tokens, dkim, queue, bounces, secrets],
		...[backup, restore, check, migrate, smtpTest],
	],
};
