import { domainToASCII } from 'node:url';
import { isEmailAddress } from '../../api/address.js';
import { daysIn, type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import type { LimitName } from '../../api/records.js';

export const settingNames = {
	public_url:
		'the URL recipients reach this service by; links in mails and pages start with it; without one they point to where serve listened last',
	time_zone: 'the time zone whose days the report counts (IANA name)',
	smtp_url: 'where mail is handed over: smtp[s]://USER@HOST:PORT',
	smtp_password: 'the password of the user of smtp_url',
	smtp_ca:
		'certificates in PEM that alone vouch for the mail server, - < ca.pem; with them nothing is sent without TLS; without them the authorities this machine trusts do',
	smtp_ehlo_name:
		'the name said to the mail server in EHLO: mail.example.com; without one it is the name of this machine if that has a dot, else the domain of public_url or of the sender',
	allow_private_webhooks: 'true lets notifications go to private and loopback addresses',
	bounce_address:
		'where bounces come back to, bounces@example.com: each message gets a return path bounces+TOKEN@example.com; without one they go to the sender',
	send_limit:
		'the most messages in any time of a length, such as 100/m; of 100/h, 3/s both hold; all processes together; copies (cc, bcc) do not count',
	sender_domain_limits:
		'the same by the domain of the sender: example.com=100/h, or *=10/s for each other domain',
	recipient_domain_limits:
		'the same by the domain of the recipient: gmail.com=100/h, gmail.com=3/s, *=10/s, where several of one domain all hold; of the to address, copies do not count',
	unsubscribe_scope:
		'what unsubscribing is of: list, that whose mail carried the link, the page offers all mail too; or all, every list',
	page_sender_name:
		'the name of the sender on the pages that mails lead to (unsubscribe and others); without one they name the sender of the mail',
	page_logo_url:
		'the logo on these pages: an https URL of a picture, or data:image/TYPE;base64,…; the only thing they load from elsewhere',
	page_color:
		'the colour of their buttons and links, #rrggbb; text on and in it is made readable, in the light and in the dark',
	keep_messages:
		'how long messages stay that are over, 400d or 57w, with their attempts, events and texts; figures, suppressions and the links of their mails stay for good; without one all stays',
	keep_events:
		'how long each single open, click and unsubscription stays, with its address and program; that and when a message was first opened stays with the message',
	keep_bodies:
		'how long texts and files stay after they were sent last; the targets of their links stay; never longer than keep_messages',
	requests_per_second: 'how often one API token may ask, more is answered 429; serve reads it when it starts',
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
	/** ASCII in lower case; `*` means each other domain separately; `''` with `all`. */
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
			return { kind: 'error', message: `"${entry}" is not a limit, such as ${examples[scope]}` };
		limits.push(limit);
	}
	if (limits.length > 0) return { kind: 'limits', limits };
	return { kind: 'error', message: `a limit is such as ${examples[scope]}` };
}

/**
 * Rejects a limit on a domain without addresses, such as `gmail`, which would never apply. Only called before
 * limits are stored: a stored limit must not stop applying.
 */
export function whyNeverMet(limits: readonly SendLimit[]): string | null {
	const never = limits.find(
		({ scope, domain }) => scope !== 'all' && domain !== '*' && !isEmailAddress(`a@${domain}`),
	);
	if (never === undefined) return null;
	return `"${formatLimit(never)}": no address ends in @${never.domain}; write the domain whole, as in ${examples[never.scope]}`;
}

export function whyTwice(limits: readonly SendLimit[]): string | null {
	const firsts = new Map<string, SendLimit>();
	for (const limit of limits) {
		const { key } = counted(limit, limit.domain);
		const first = firsts.get(key);
		if (first !== undefined)
			return `"${formatLimit(first)}" and "${formatLimit(limit)}" are for the same time; give one of them`;
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
/** Longer windows would need a log of sends that is too large. */
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
