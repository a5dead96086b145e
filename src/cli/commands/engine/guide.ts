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
import { noAddress } from '../../verbs/address-faults.js';
import { matching } from '../../verbs/choices.js';
import { acceptance, loginRemedy, refusal } from '../../verbs/smtp-reply.js';

export interface Guided {
	sender: string;
	values: Record<string, string | null>;
	/** What does the same without questions. */
	command: OwnCommand;
}

interface Server {
	url: string;
	/** Null: none is needed. */
	password: string | null;
	now: Readonly<Record<string, string>>;
	sender: string;
}

/** Settings that are there already are what Enter alone answers. Throws as prompts do. */
export async function guideInit(cx: CommandContext): Promise<Guided> {
	const target = cx.settings.target.target();
	if (target.kind !== 'local') throw onlyLocal('engine init');
	const isThere = !isMissingFile(target.url);
	const now = isThere ? await (await cx.local()).settings.get({ reveal: true }) : {};
	await cx.note(
		isThere
			? `${shownDatabase(target.url)} is there already: Enter keeps what is set. Ctrl-C leaves everything as it is.`
			: `Sets up ${shownDatabase(target.url)}. Ctrl-C leaves everything as it is.`,
	);
	const senders = isThere ? (await cx.api()).senders : undefined;
	const first = (await senders?.page({ page_size: 1 }, { signal: cx.signal }))?.results[0];
	const typed = await cx.ask('Sender address:', {
		check: async (text) => noAddress(text, 'mailbox'),
		...(first !== undefined && { initial: first.from_email }),
	});
	const sender = typed.trim();
	const server = await askServer(cx, now, sender);
	const url = await checkOf('url');
	const known = now['public_url'];
	const later = known === undefined ? ' (Enter: later)' : '';
	const publicUrl = await cx.ask(`Public URL of this service, for links in mails${later}:`, {
		...(known !== undefined && { initial: known }),
		check: async (text) => (text === '' ? null : url(text)),
	});
	// The first one is where Enter alone leads.
	const zones = new Set([
		now['time_zone'] ?? timeZoneOf(cx.settings),
		'UTC',
		...Intl.supportedValuesOf('timeZone'),
	]);
	const choices = [...zones].map((name) => ({ name, value: name, names: [name] }));
	const zone = await cx.search('Time zone (days of reports are counted in it):', async (typed) =>
		matching(choices, typed.trim().replaceAll(' ', '_')),
	);
	// A year, and the month in which it is compared with the one before.
	const kept = await cx.ask(
		'How long to keep messages (older ones are deleted, figures stay; none: for good):',
		{
			initial: now['keep_messages'] ?? '400d',
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

/** What the DNS still lacks for the senders; `doctor` says the same. */
export async function sayDns(cx: CommandContext): Promise<void> {
	const target = cx.settings.target.target();
	if (target.kind !== 'local') return;
	const { findFaults } = await import('../../doctor/command.js');
	const dns = { only: ['dns'], skip: [], offline: false, full: false, nameServer: undefined } as const;
	for (const { level, message, fix } of await findFaults(cx, dns, null))
		if (level === 'warning' || level === 'problem')
			await cx.note([`DNS: ${message}`, ...(fix?.split('\n').map((step) => `  ${step}`) ?? [])]);
	await cx.hint([mailctl('doctor'), ' looks at the DNS and all else again']);
}

/** The mail server is tried before it is kept; an answer that does not work is there to be changed. */
async function askServer(
	cx: CommandContext,
	now: Readonly<Record<string, string>>,
	sender: string,
): Promise<Record<string, string>> {
	const { normalOf } = await import('../../connect/local.js');
	let initial = now['smtp_url'];
	for (;;) {
		const later = initial === undefined ? ' (Enter: later)' : '';
		const typed = await cx.ask(`Mail server, smtp[s]://USER@HOST:PORT${later}:`, {
			...(initial !== undefined && { initial }),
			check: whyNoServer,
		});
		if (typed.trim() === '') return {};
		const url = await normalOf('smtp_url', typed);
		const password = await askPassword(cx, url, now);
		const values = { smtp_url: url, ...(password !== null && { smtp_password: password }) };
		const next = await tryUntilDecided(cx, { url, password, now, sender });
		if (next === 'keep') return values;
		if (next === 'none') return {};
		initial = url;
	}
}

async function tryUntilDecided(cx: CommandContext, server: Server): Promise<'keep' | 'change' | 'none'> {
	for (;;) {
		const refused = await tryServer(cx, server);
		if (refused === null) return 'keep';
		await cx.note(refused.says);
		if (refused.remedy === 'login') await cx.hint(loginRemedy);
		const next = await cx.choose<'change' | 'again' | 'keep' | 'none'>('What now?', [
			{ name: 'change the address or the password', value: 'change' },
			{ name: 'try it again', value: 'again' },
			{ name: 'keep it as it is', value: 'keep' },
			{ name: 'no mail server for now', value: 'none' },
		]);
		if (next !== 'again') return next;
	}
}

async function whyNoServer(text: string): Promise<string | null> {
	if (text === '') return null;
	const { assertSmtpUrl } = await import('../../connect/mail.js');
	try {
		assertSmtpUrl(text);
		return null;
	} catch (error) {
		if (!(error instanceof ApiError) || error.fields === null) throw error;
		return listFieldErrors(error.fields)
			.map(({ message }) => message)
			.join(' ');
	}
}

/** Null: the server asks for no login. The password that is stored stays with its user when Enter alone is pressed. */
async function askPassword(
	cx: CommandContext,
	url: string,
	now: Readonly<Record<string, string>>,
): Promise<string | null> {
	const { username } = new URL(url);
	if (username === '') return null;
	const stored = now['smtp_url'] === url ? now['smtp_password'] : undefined;
	const user = decodeURIComponent(username);
	const typed = await cx.askSecret(
		`Password of ${user}${stored === undefined ? '' : ' (Enter: as stored)'}:`,
	);
	return typed === '' ? (stored ?? null) : typed;
}

/** Why it does not accept mail; null: it does. */
async function tryServer(
	cx: CommandContext,
	{ url, password, now, sender }: Server,
): Promise<{ says: string; remedy: SmtpTest['remedy'] } | null> {
	const { smtpOf, testSmtp } = await import('../../connect/mail.js');
	const { value: timeoutMs } = cx.settings.timeoutMs;
	const timeout = AbortSignal.timeout(timeoutMs);
	const signal = AbortSignal.any([cx.signal, timeout]);
	const kept = { smtpCa: now['smtp_ca'] ?? null, smtpEhloName: now['smtp_ehlo_name'] ?? null };
	const set = { smtpUrl: url, smtpPassword: password, ...kept, publicUrl: now['public_url'] ?? null };
	const address = parseMailbox(sender)?.address ?? null;
	const settings = smtpOf(set, address);
	cx.stand(`trying ${settings.host}:${settings.port}`);
	const asked = { trace: cx.trace, sender: now['bounce_address'] ?? address, signal };
	const test = await testSmtp(settings, asked).finally(() => cx.stand(null));
	cx.signal.throwIfAborted();
	if (test.ok) {
		await cx.note(acceptance(test));
		return null;
	}
	if (!timeout.aborted) return { says: refusal(test), remedy: test.remedy };
	return { says: `${test.host}:${test.port}: no answer within ${timeoutMs / 1000} s`, remedy: null };
}

/** A password stands in no command line. */
function commandOf(sender: string, values: Readonly<Record<string, string | null>>): OwnCommand {
	const { smtp_url, smtp_password, public_url, time_zone, keep_messages } = values;
	const given = {
		'--sender': sender,
		'--smtp': smtp_url,
		'--smtp-password-file': smtp_password === undefined ? undefined : 'FILE',
		'--public-url': public_url,
		'--time-zone': time_zone,
		'--keep-messages': keep_messages ?? 'none',
	};
	const words = Object.entries(given).flatMap(([flag, value]) =>
		value === undefined || value === null ? [] : [flag, value],
	);
	return mailctl('engine', 'init', ...words);
}
