import { createPublicKey } from 'node:crypto';
import { isIP } from 'node:net';
import { domainOf, isEmailAddress, parseAddress } from '../api/address.js';
import { daysIn, isTimeZone } from '../api/datetime.js';
import { type FieldErrors, invalid } from '../api/errors.js';
import { texts } from '../api/schema/texts.js';
import { canParseUrl, isWebUrl } from '../api/schema/url.js';
import type { Store } from '../store/store.js';
import type { StoreContext } from './context.js';
import {
	formatLimit,
	limitSettings,
	parseLimits,
	type SettingName,
	settingNames,
	whyNeverMet,
	whyTwice,
} from './rules/settings.js';
import type { UnsubscribeScope } from './rules/subscribers.js';

const defaultListeningUrl = 'http://127.0.0.1:8080';
/** Users cannot set this setting. Workers in other processes read the URL to make links. */
const listeningUrlName = 'listening_url';

export const settingDefaults = {
	time_zone: 'UTC',
	allow_private_webhooks: 'false',
	unsubscribe_scope: 'list',
	page_color: '#1d4ed8',
} as const satisfies Partial<Record<SettingName, string>>;

export const secretSettings: ReadonlySet<string> = new Set<SettingName>(['smtp_password']);

export interface EngineSettings {
	publicUrl: string | null;
	linkBase: string;
	timeZone: string;
	smtpUrl: string | null;
	smtpPassword: string | null;
	smtpCa: string | null;
	smtpEhloName: string | null;
	allowPrivateWebhooks: boolean;
	bounceAddress: string | null;
	unsubscribeScope: UnsubscribeScope;
	requestsPerSecond: number | null;
}

export async function readSettings(store: Pick<Store, 'reads'>): Promise<EngineSettings> {
	const values = await store.reads.getSettings();
	const value = (name: SettingName) => values[name] ?? null;
	const publicUrl = value('public_url');
	return {
		publicUrl,
		linkBase: publicUrl ?? values[listeningUrlName] ?? defaultListeningUrl,
		timeZone: value('time_zone') ?? settingDefaults.time_zone,
		smtpUrl: value('smtp_url'),
		smtpPassword: value('smtp_password'),
		smtpCa: value('smtp_ca'),
		smtpEhloName: value('smtp_ehlo_name'),
		allowPrivateWebhooks: value('allow_private_webhooks') === 'true',
		bounceAddress: value('bounce_address'),
		unsubscribeScope: value('unsubscribe_scope') === 'all' ? 'all' : 'list',
		requestsPerSecond: Number(value('requests_per_second')) || null,
	};
}

export async function keepListeningUrl({ store, clock }: StoreContext, url: string): Promise<void> {
	await store.writes.putSettings({ values: { [listeningUrlName]: url }, now: clock.now() });
}

export async function listSettings(store: Store): Promise<[SettingName, string][]> {
	const values = await store.reads.getSettings();
	return Object.entries(values)
		.filter((entry): entry is [SettingName, string] => Object.hasOwn(settingNames, entry[0]))
		.map(([name, value]) => [name, normalSetting(name, value)]);
}

/** Turns `400` into `400d` and `100/60m` into `100/h`. Returns an invalid value unchanged. */
export function normalSetting(name: string, value: string): string {
	const outcome = checkSetting(name, value);
	return 'problem' in outcome ? value : (outcome.value ?? value);
}

export async function writeSettings(
	{ store, clock }: StoreContext,
	values: Readonly<Record<string, string | null>>,
): Promise<void> {
	await store.writes.putSettings({ values: checkSettings(values), now: clock.now() });
}

export function checkSettings(
	values: Readonly<Record<string, string | null>>,
): Record<string, string | null> {
	// Collect entries, because assigning to a key `__proto__` would change the prototype of an object.
	const errors: [string, FieldErrors[string]][] = [];
	const checkedValues: [string, string | null][] = [];
	for (const [name, value] of Object.entries(values)) {
		const outcome = checkSetting(name, value);
		if ('problem' in outcome) errors.push([name, [{ code: 'invalid', message: outcome.problem }]]);
		else checkedValues.push([name, outcome.value]);
	}
	if (errors.length > 0) throw invalid(Object.fromEntries(errors));
	return Object.fromEntries(checkedValues);
}

export function settingProblem(name: string, value: string): string | null {
	const outcome = checkSetting(name, value);
	return 'problem' in outcome ? outcome.problem : null;
}

type Checked = { value: string | null } | { problem: string };

function checkSetting(name: string, given: string | null): Checked {
	if (!Object.hasOwn(settingNames, name))
		return { problem: `Unknown setting; the known settings are: ${Object.keys(settingNames).join(', ')}.` };
	if (given === null) return { value: null };
	return name === 'smtp_password' ? { value: given } : checks[name as SettingName](given.trim());
}

function either(value: string | null, problem: string): Checked {
	return value === null ? { problem } : { value };
}

const maxPageSenderName = 100;

const checks: Readonly<Record<SettingName, (value: string) => Checked>> = {
	public_url: checkPublicUrl,
	time_zone: (text) =>
		either(isTimeZone(text) ? text : null, `"${text}" is not an IANA time zone, such as Europe/Oslo.`),
	allow_private_webhooks: (text) =>
		/^(true|yes|on|1)$/i.test(text)
			? { value: 'true' }
			: either(/^(false|no|off|0)$/i.test(text) ? 'false' : null, 'Must be true or false.'),
	unsubscribe_scope: (text) =>
		either(/^(list|all)$/i.test(text) ? text.toLowerCase() : null, 'Must be "list" or "all".'),
	page_sender_name: (name) => {
		const isName = name !== '' && name.length <= maxPageSenderName && !/\p{Cc}/u.test(name);
		return either(isName ? name : null, `Enter a name of one line, 1 to ${maxPageSenderName} characters.`);
	},
	page_logo_url: checkPageLogoUrl,
	page_color: (text) =>
		either(/^#[\da-f]{6}$/i.test(text) ? text.toLowerCase() : null, 'Must be #rrggbb, such as #1d4ed8.'),
	bounce_address: checkBounceAddress,
	smtp_url: (value) => ({ value }),
	smtp_password: (value) => ({ value }),
	smtp_ca: checkCertificates,
	smtp_ehlo_name: checkEhloName,
	send_limit: checkLimits('send_limit'),
	sender_domain_limits: checkLimits('sender_domain_limits'),
	recipient_domain_limits: checkLimits('recipient_domain_limits'),
	keep_messages: checkKept,
	keep_events: checkKept,
	keep_bodies: checkKept,
	requests_per_second: (text) =>
		either(/^[1-9]\d{0,5}$/.test(text) ? text : null, 'Must be a number from 1 to 999999.'),
};

function checkCertificates(value: string): Checked {
	const certificates = value.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
	const isReadable = (pem: string) => {
		try {
			// `createPublicKey` parses the whole certificate. Do not use the class X509Certificate: the build can
			// load functions of `node:crypto` on demand, but no classes.
			return createPublicKey(pem).type === 'public';
		} catch {
			return false;
		}
	};
	const areReadable = certificates.length > 0 && certificates.every(isReadable);
	return either(areReadable ? certificates.join('\n') : null, 'Must be certificates in PEM format.');
}

/** RFC 5321 s.4.1.1.1: a domain or an address literal. */
function checkEhloName(value: string): Checked {
	const address = value.replace(/^\[(?:IPv6:)?|\]$/gi, '');
	if (isIP(address) !== 0) return { value: isIP(address) === 4 ? `[${address}]` : `[IPv6:${address}]` };
	const name = isEmailAddress(`x@${value}`) ? domainOf(`x@${value}`) : null;
	return either(name, 'Must be a host name with a dot, such as mail.example.com, or an IP address.');
}

function checkLimits(name: keyof typeof limitSettings): (value: string) => Checked {
	return (value) => {
		const parsed = parseLimits(limitSettings[name], value);
		if (parsed.kind === 'error') return { problem: `${parsed.message}.` };
		const wrong = whyNeverMet(parsed.limits) ?? whyTwice(parsed.limits);
		return wrong === null ? { value: parsed.limits.map(formatLimit).join(', ') } : { problem: `${wrong}.` };
	};
}

function checkKept(value: string): Checked {
	const days = daysIn(value);
	const problem = 'Must be at least one day, such as 400d or 57w. Unset it to keep everything.';
	return either(days === null ? null : `${days}d`, problem);
}

/** Short, because a token follows and a local part has at most 64 octets (RFC 5321 s.4.5.3.1.1). */
const bouncePrefix = /^(?!.*\.\.)[a-z0-9](?:[a-z0-9._-]{0,13}[a-z0-9])?$/i;

function checkBounceAddress(value: string): Checked {
	const parsed = parseAddress(value);
	if (parsed === null) return { problem: texts.email };
	const [local = ''] = parsed.address.split('@');
	// Keep the case of the local part, because its host may distinguish case (RFC 5321 s.2.4).
	return either(
		bouncePrefix.test(local) ? `${local}@${domainOf(parsed.key)}` : null,
		'Must have 1 to 15 letters, digits, dots, hyphens or underscores before the @.',
	);
}

const maxDataUri = 48_000;
const dataUri = /^data:image\/(?:png|jpeg|gif|webp|svg\+xml);base64,[a-z\d+/]+={0,2}$/i;

/**
 * Accepts only URLs that a content security policy matches exactly (CSP 3 s.2.3.1). A final slash would match a folder,
 * and `*` all hosts of a domain.
 */
function checkPageLogoUrl(value: string): Checked {
	if (value.length <= maxDataUri && dataUri.test(value)) return { value };
	const url = isWebUrl(value) ? new URL(value) : null;
	const isUsable =
		url?.protocol === 'https:' &&
		!/[*[]/.test(url.hostname) &&
		!url.pathname.endsWith('/') &&
		`${url.username}${url.password}${url.hash}` === '';
	return either(
		isUsable ? url.href : null,
		'Enter the https URL of a picture, or data:image/png;base64,… of at most 48,000 characters.',
	);
}

/** List-Unsubscribe contains this URL and the path of a page. The whole field may have 900 characters. */
const maxPublicUrl = 800;

// Every mail contains this URL, so reject queries, fragments and user names.
function checkPublicUrl(value: string): Checked {
	const url = canParseUrl(value) ? new URL(value) : null;
	if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return { problem: texts.url };
	const isPlain = `${url.search}${url.hash}${url.username}${url.password}` === '';
	const found = `${url.origin}${url.pathname.replace(/(?<!\/)\/+$/, '')}`;
	return either(
		isPlain && found.length <= maxPublicUrl ? found : null,
		`Enter a URL of at most ${maxPublicUrl} characters, without a user, query or fragment.`,
	);
}
