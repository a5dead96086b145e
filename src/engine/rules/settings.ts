import { domainToASCII } from 'node:url';
import { isEmailAddress } from '../../api/address.js';
import { daysIn, type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import type { LimitName } from '../../api/records.js';

export const settingNames = {
	public_url:
		'base URL of the links in mails and of the pages that they open; default: the address at which serve last listened',
	time_zone: 'IANA time zone in which the days of reports begin and end',
	smtp_url: 'mail server that sends the mail: smtp[s]://USER@HOST:PORT',
	smtp_password: 'password of the user in smtp_url',
	smtp_ca:
		'PEM certificates to trust for the mail server, instead of those of this machine; mailctl then requires TLS, unless smtp_url says tls=never; to read a file, use - < ca.pem',
	smtp_ehlo_name:
		'host name in EHLO, such as mail.example.com; default: the name of this machine if it has a dot, else the domain of public_url or of the sender',
	allow_private_webhooks: 'true allows webhooks at private and loopback addresses',
	bounce_address:
		'address for bounces, such as bounces@example.com; each message gets the return path bounces+TOKEN@example.com; default: the sender',
	send_limit:
		'the most messages per period, such as 100/m; with two limits, such as 100/h, 3/s, both apply; all processes share the limits; copies (cc, bcc) do not count',
	sender_domain_limits: 'limits by domain of the sender: example.com=100/h, or *=10/s for each other domain',
	recipient_domain_limits:
		'limits by domain of the recipient: gmail.com=100/h, gmail.com=3/s, *=10/s; all limits of a domain apply; cc and bcc do not count',
	unsubscribe_scope:
		'what an unsubscription ends: list (the mail of one list; the page also offers to end all mail) or all (the mail of every list)',
	page_sender_name:
		'sender name on the pages for recipients, such as the unsubscribe page; default: the sender of the mail',
	page_logo_url: 'logo on the pages for recipients: an https URL of an image, or data:image/TYPE;base64,…',
	page_color:
		'color of buttons and links on the pages for recipients, #rrggbb; adjusted to stay readable in light and dark mode',
	keep_messages:
		'how long to keep finished messages with attempts, events and texts, such as 400d or 57w; default: forever; figures, suppressions and links are never deleted',
	keep_events:
		'how long to keep the records of opens, clicks and unsubscriptions, with IP address and user agent; each message keeps the times of its first open and first click',
	keep_bodies:
		'how long to keep texts and files after they were last sent, at most as long as keep_messages; link targets are kept',
	requests_per_second:
		'the most requests per second of an API token; serve answers 429 to the rest, and reads this setting only when it starts',
} as const;

export type SettingName = keyof typeof settingNames;

export interface Retention {
	messages: Micros | null;
	events: Micros | null;
	bodies: Micros | null;
}

export const retentionSettings = ['keep_messages', 'keep_events', 'keep_bodies'] as const;

export const proposedRetention: Readonly<Record<string, string>> = {
	keep_messages: '400d',
	keep_events: '400d',
	keep_bodies: '400d',
};

export function retentionOf(values: Readonly<Record<string, string>>): Retention {
	const kept = (name: (typeof retentionSettings)[number]): Micros | null => {
		const days = daysIn(values[name] ?? '');
		return days === null ? null : days * microsPerDay;
	};
	const [messages, events, own] = [kept('keep_messages'), kept('keep_events'), kept('keep_bodies')];
	return {
		messages,
		events,
		bodies: own === null || messages === null ? (own ?? messages) : Math.min(own, messages),
	};
}

type LimitScope = 'all' | 'sender' | 'recipient';

export const limitSettings = {
	send_limit: 'all',
	sender_domain_limits: 'sender',
	recipient_domain_limits: 'recipient',
} as const satisfies Record<string, LimitScope>;

export interface SendLimit {
	scope: LimitScope;
	/** ASCII in lower case; empty if `scope` is `all`. `*` applies separately to each domain that has no other limit. */
	domain: string;
	count: number;
	window: Micros;
}

export interface CountedLimit {
	key: string;
	count: number;
	window: Micros;
}

type ParsedLimits = { kind: 'limits'; limits: SendLimit[] } | { kind: 'error'; message: string };

export function parseLimits(scope: LimitScope, text: string): ParsedLimits {
	const limits: SendLimit[] = [];
	for (const entry of text.split(/[\s,]+/).filter((each) => each !== '')) {
		const limit = parseLimit(scope, entry.toLowerCase());
		if (limit === null)
			return {
				kind: 'error',
				message: `"${entry}" is not a valid limit: use one such as ${examples[scope]}`,
			};
		limits.push(limit);
	}
	if (limits.length > 0) return { kind: 'limits', limits };
	return { kind: 'error', message: `expected a limit such as ${examples[scope]}` };
}

/**
 * Returns the error for a limit whose domain no address can have, such as `gmail`; otherwise null. Call it only before
 * storing limits, because stored limits must continue to apply.
 */
export function whyNeverMet(limits: readonly SendLimit[]): string | null {
	const never = limits.find(
		({ scope, domain }) => scope !== 'all' && domain !== '*' && !isEmailAddress(`a@${domain}`),
	);
	if (never === undefined) return null;
	return `"${formatLimit(never)}": no address ends in @${never.domain}; write the whole domain, as in ${examples[never.scope]}`;
}

export function whyTwice(limits: readonly SendLimit[]): string | null {
	const firsts = new Map<string, SendLimit>();
	for (const limit of limits) {
		const { key } = counted(limit, limit.domain);
		const first = firsts.get(key);
		if (first !== undefined)
			return `"${formatLimit(first)}" and "${formatLimit(limit)}" have the same period; use one of them`;
		firsts.set(key, limit);
	}
	return null;
}

export function limitsOn(
	limits: readonly SendLimit[],
	message: { sender: string; recipient: string },
): CountedLimit[] {
	return [
		...limits.filter(({ scope }) => scope === 'all').map((limit) => counted(limit, '')),
		...ofDomain(limits, 'sender', message.sender),
		...ofDomain(limits, 'recipient', message.recipient),
	];
}

export function limitOf(limits: readonly SendLimit[], key: string): SendLimit | null {
	const window = windowOf(key);
	const same = limits.filter(({ scope, window: own }) => key.startsWith(`${scope} `) && own === window);
	const domain = domainOfKey(key);
	return same.find((limit) => limit.domain === domain) ?? same.find((limit) => limit.domain === '*') ?? null;
}

export function nameLimit(limit: SendLimit, key: string): LimitName {
	return { setting: settings[limit.scope], limit: formatLimit(limit), domain: domainOfKey(key) || null };
}

function domainOfKey(key: string): string {
	return key.slice(key.indexOf(' ') + 1, key.lastIndexOf(' '));
}

export function rateLimit(perSecond: number): SendLimit {
	const count = Math.max(1, Math.ceil(perSecond));
	return { scope: 'all', domain: '', count, window: Math.ceil((count / perSecond) * microsPerSecond) };
}

export function formatLimit({ domain, count, window }: SendLimit): string {
	const [unit = 's', length = microsPerSecond] =
		Object.entries(units).findLast(([, each]) => window % each === 0) ?? [];
	const times = window / length;
	return `${domain === '' ? '' : `${domain}=`}${count}/${times === 1 ? '' : times}${unit}`;
}

export function windowOf(key: string): Micros {
	return Number(key.slice(key.lastIndexOf(' ') + 1));
}

const settings: Readonly<Record<LimitScope, keyof typeof limitSettings>> = {
	all: 'send_limit',
	sender: 'sender_domain_limits',
	recipient: 'recipient_domain_limits',
};

const examples: Readonly<Record<LimitScope, string>> = {
	all: '100/m',
	sender: 'example.com=100/h or *=10/s',
	recipient: 'gmail.com=100/h or *=10/s',
};

const units: Readonly<Record<string, Micros>> = {
	s: microsPerSecond,
	m: 60 * microsPerSecond,
	h: 3_600 * microsPerSecond,
	d: microsPerDay,
};
/** A longer window would make the log of sends too large. */
const longestWindow: Micros = 31 * microsPerDay;

function parseLimit(scope: LimitScope, entry: string): SendLimit | null {
	const [, written = '', digits = '', times = '1', unit = ''] =
		/^(?:([^=/]+)=)?([1-9]\d{0,8})\/([1-9]\d{0,4})?([smhd])$/.exec(entry) ?? [];
	const window = Number(times) * (units[unit] ?? Number.NaN);
	if (!(window <= longestWindow)) return null;
	if ((scope === 'all') !== (written === '')) return null;
	const domain = written === '*' ? '*' : domainToASCII(written);
	if (scope !== 'all' && domain === '') return null;
	return { scope, domain, count: Number(digits), window };
}

function ofDomain(limits: readonly SendLimit[], scope: LimitScope, domain: string): CountedLimit[] {
	const scoped = limits.filter((limit) => limit.scope === scope);
	const own = scoped.filter((limit) => limit.domain === domain);
	const used = own.length > 0 ? own : scoped.filter((limit) => limit.domain === '*');
	return used.map((limit) => counted(limit, domain));
}

function counted({ scope, count, window }: SendLimit, domain: string): CountedLimit {
	return { key: `${scope} ${domain} ${window}`, count, window };
}
