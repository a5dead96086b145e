import { domainToASCII } from 'node:url';
import { isEmailAddress } from '../../api/address.js';
import { type Micros, microsPerDay, microsPerSecond } from '../../api/datetime.js';
import type { LimitName } from '../../api/records.js';

type LimitScope = 'all' | 'sender' | 'recipient';

export const limitSettings = {
	send_limit: 'all',
	sender_domain_limits: 'sender',
	recipient_domain_limits: 'recipient',
} as const satisfies Record<string, LimitScope>;

export interface SendLimit {
	scope: LimitScope;
	/** In ASCII and lower case; `*` means each other domain separately; `''` with `all`. */
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
 * Nothing would ever count against a limit on a domain without addresses, such as `gmail`. Checked before limits are
 * stored, never when they are read: a stored limit must not stop applying.
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
/** Longer windows would be stored for longer than the log of sends is worth. */
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
