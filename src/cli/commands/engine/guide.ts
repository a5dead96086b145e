import { parseMailbox } from '../../../api/address.js';
import { daysIn } from '../../../api/datetime.js';
import { ApiError, listFieldErrors } from '../../../api/errors.js';
import { isMissingFile, shownDatabase } from '../../../store/url.js';
import { timeZoneOf } from '../../config/settings.js';
import { checkOf } from '../../frame/asking.js';
import { mailctl, type OwnCommand } from '../../frame/command-line.js';
import type { SmtpTest } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { onlyLocal } from '../../frame/errors.js';
import { given } from '../../frame/values.js';
import { noAddress } from '../../verbs/address-faults.js';
import { matching } from '../../verbs/choices.js';
import { acceptance, loginRemedy, smtpRefusal } from '../../verbs/refusals.js';

export async function guideInit(cx: CommandContext) {
	const target = cx.settings.target.target();
	if (target.kind !== 'local') throw onlyLocal('engine init');
	const isThere = !isMissingFile(target.url);
	const now = isThere ? await (await cx.local()).settings.get({ reveal: true }) : {};
	await cx.note(
		isThere
			? `${shownDatabase(target.url)} already exists: Enter keeps each setting. Ctrl-C leaves everything as it is.`
			: `Sets up ${shownDatabase(target.url)}. Ctrl-C leaves everything as it is.`,
	);
	const senders = isThere ? (await cx.api()).senders : undefined;
	const first = (await senders?.page({ page_size: 1 }, { signal: cx.signal }))?.results[0];
	const typed = await cx.ask('Sender address:', {
		check: async (text) => noAddress(text, 'mailbox'),
		...given({ initial: first?.from_email }),
	});
	const sender = typed.trim();
	const server = await askServer(cx, now, sender);
	const url = await checkOf('url');
	const known = now['public_url'];
	const later = known === undefined ? ' (Enter: later)' : '';
	const publicUrl = await cx.ask(`Public URL of this service, for links in mails${later}:`, {
		...given({ initial: known }),
		check: async (text) => (text === '' ? null : url(text)),
	});
	const ownZone = now['time_zone'] ?? timeZoneOf(cx.settings);
	const zones = new Set([ownZone, 'UTC', ...Intl.supportedValuesOf('timeZone')]);
	const choices = [...zones].map((name) => ({ name, value: name, names: [name] }));
	const zone = await cx.search('Time zone for the days in reports:', async (typed) =>
		matching(choices, typed.trim().replaceAll(' ', '_')),
	);
	// 400 days keep a year and a month, so that a month can be compared with the same month of the previous year.
	const kept = await cx.ask(
		'How long to keep messages (older ones are deleted, figures stay; type none to keep all):',
		{
			initial: now['keep_messages'] ?? (isThere ? 'none' : '400d'),
			check: async (text) =>
				text === 'none' || daysIn(text) !== null ? null : 'a number of days, such as 400d, or none',
		},
	);
	const values = {
		...server,
		...(publicUrl !== '' && { public_url: publicUrl }),
		time_zone: zone,
		keep_messages: kept === 'none' ? null : kept,
	};
	return { sender, values, command: commandOf(sender, values) };
}

export async function sayDns(cx: CommandContext): Promise<void> {
	const target = cx.settings.target.target();
	if (target.kind !== 'local') return;
	const { findFaults } = await import('../../doctor/command.js');
	const dns = { only: ['dns'], skip: [], offline: false, full: false, nameServer: undefined } as const;
	for (const { level, message, fix } of await findFaults(cx, dns, null))
		if (level === 'warning' || level === 'problem')
			await cx.note([`DNS: ${message}`, ...(fix?.split('\n').map((step) => `  ${step}`) ?? [])]);
	await cx.hint([mailctl('doctor'), ' checks the DNS and everything else again']);
}

type Stored = Readonly<Record<string, string>>;

async function askServer(cx: CommandContext, now: Stored, sender: string): Promise<Record<string, string>> {
	const { normalOf } = await import('../../connect/local.js');
	let initial = now['smtp_url'];
	for (;;) {
		const later = initial === undefined ? ' (Enter: later)' : '';
		const typed = await cx.ask(`Mail server, smtp[s]://USER@HOST:PORT${later}:`, {
			...given({ initial }),
			check: whyNoServer,
		});
		if (typed.trim() === '') return {};
		const url = await normalOf('smtp_url', typed);
		const stored = now['smtp_url'] === url ? now['smtp_password'] : undefined;
		const password = await askPassword(cx, url, stored);
		const values = { smtp_url: url, ...given({ smtp_password: password }) };
		const test = await tryServer(cx, { ...now, ...values }, sender);
		if (test.ok) {
			await cx.note(acceptance(test));
			return values;
		}
		await cx.note(smtpRefusal(test));
		if (test.remedy === 'login') await cx.hint(loginRemedy);
		const next = await cx.choose<'change' | 'keep' | 'none'>('What now?', [
			{ name: 'change the address or the password', value: 'change' },
			{ name: 'keep it as it is', value: 'keep' },
			{ name: 'no mail server for now', value: 'none' },
		]);
		if (next !== 'change') return next === 'keep' ? values : {};
		initial = url;
	}
}

async function askPassword(cx: CommandContext, url: string, stored: string | undefined) {
	const { username } = new URL(url);
	if (username === '') return undefined;
	const enter = stored === undefined ? '' : ' (Enter: as stored)';
	return (await cx.askSecret(`Password of ${decodeURIComponent(username)}${enter}:`)) || stored;
}

async function whyNoServer(text: string): Promise<string | null> {
	const { assertSmtpUrl } = await import('../../connect/mail.js');
	try {
		if (text !== '') assertSmtpUrl(text);
		return null;
	} catch (error) {
		if (!(error instanceof ApiError) || error.fields === null) throw error;
		return listFieldErrors(error.fields)
			.map(({ message }) => message)
			.join(' ');
	}
}

async function tryServer(cx: CommandContext, values: Stored, sender: string): Promise<SmtpTest> {
	const { smtpOf, testSmtp } = await import('../../connect/mail.js');
	const address = parseMailbox(sender)?.address ?? null;
	const settings = smtpOf(
		{
			smtpUrl: values['smtp_url'] ?? null,
			smtpPassword: values['smtp_password'] ?? null,
			smtpCa: values['smtp_ca'] ?? null,
			smtpEhloName: values['smtp_ehlo_name'] ?? null,
			publicUrl: values['public_url'] ?? null,
		},
		address,
	);
	cx.stand(`trying ${settings.host}:${settings.port}`);
	const signal = AbortSignal.any([cx.signal, AbortSignal.timeout(cx.settings.timeoutMs.value)]);
	const asked = { trace: cx.trace, sender: values['bounce_address'] ?? address, signal };
	const test = await testSmtp(settings, asked).finally(() => cx.stand(null));
	cx.signal.throwIfAborted();
	return test;
}

function commandOf(sender: string, values: Readonly<Record<string, string | null>>): OwnCommand {
	const { smtp_url, smtp_password, public_url, time_zone, keep_messages } = values;
	const flags = {
		'--sender': sender,
		'--smtp': smtp_url,
		'--smtp-password-file': smtp_password === undefined ? undefined : 'FILE',
		'--public-url': public_url,
		'--time-zone': time_zone,
		'--keep-messages': keep_messages ?? 'none',
	};
	const words = Object.entries(flags).flatMap(([flag, value]) => (value == null ? [] : [flag, value]));
	return mailctl('engine', 'init', ...words);
}
