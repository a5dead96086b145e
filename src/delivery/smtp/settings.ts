import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { domainOf, isEmailAddress } from '../../api/address.js';
import { canParseUrl } from '../../api/schema/url.js';

/**
 * `never`: unencrypted, whatever the server offers. `opportunistic`: STARTTLS if offered, with any certificate. An
 * attacker who can replace the certificate can also strip the offer (RFC 7435). `required`: STARTTLS with a valid
 * certificate, or nothing is sent. `implicit`: TLS from the first byte, with a valid certificate (RFC 8314 s.3.3).
 */
type SmtpSecurity = 'never' | 'opportunistic' | 'required' | 'implicit';

export interface SmtpSettings {
	host: string;
	port: number;
	security: SmtpSecurity;
	user: string | null;
	password: string | null;
	name: string | null;
	ca: string | null;
}

/** Milliseconds per whole step. A server cannot extend a step by sending a byte a second. */
export interface SmtpTimeouts {
	connect: number;
	greeting: number;
	command: number;
	data: number;
	body: number;
	answer: number;
}

/** At least those of RFC 5321 s.4.5.3.2, but 30 s instead of 5 min for the greeting, because a person waits. */
export const standardTimeouts: SmtpTimeouts = {
	connect: 30_000,
	greeting: 30_000,
	command: 300_000,
	data: 120_000,
	body: 600_000,
	answer: 600_000,
};

type ParsedSmtpUrl = { kind: 'settings'; settings: SmtpSettings } | { kind: 'error'; message: string };

const example = 'smtp://USER@HOST:587';

/**
 * `smtp://` uses STARTTLS if offered. If the URL has a user, `smtp://` requires STARTTLS, because an attacker can strip
 * the offer. Shell histories, process lists and logs show URLs. So a URL must not contain the password, and errors
 * never quote the URL.
 */
export function parseSmtpUrl(text: string): ParsedSmtpUrl {
	const error = (message: string): ParsedSmtpUrl => ({ kind: 'error', message });
	const invalid = error(`not a valid SMTP URL, such as ${example}`);
	const scheme = /^(smtps?):\/\//i.exec(text.trim())?.[1]?.toLowerCase();
	if (scheme === undefined) return error(`an SMTP URL starts with smtp:// or smtps://, as in ${example}`);
	// Parse the URL as ftp, because `URL` converts names to punycode only for schemes that it knows.
	const ftp = text.trim().replace(/^smtps?:/i, 'ftp:');
	if (!canParseUrl(ftp)) return invalid;
	const url = new URL(ftp);
	if (url.password !== '')
		return error('no password in the URL: put it in a file and name it with --smtp-password-file');
	const user = decodeUser(url.username);
	const hasRest = !['', '/'].includes(url.pathname) || url.hash !== '';
	if (url.hostname === '' || url.port === '0' || hasRest || user === null) return invalid;
	const security = securityOf(scheme, user !== '', url.searchParams);
	if (security === null)
		return error('the only parameter is tls=never|opportunistic|required (smtp:// only)');
	if (security === 'opportunistic' && user !== '') return error('with a user, tls is required or never');
	const usualPort = scheme === 'smtps' ? 465 : user === '' ? 25 : 587;
	const settings = {
		host: url.hostname.replace(/^\[|\]$/g, ''),
		port: url.port === '' ? usualPort : Number(url.port),
		security,
		user: user === '' ? null : user,
		...{ password: null, name: null, ca: null },
	};
	return { kind: 'settings', settings };
}

function securityOf(scheme: string, hasUser: boolean, query: URLSearchParams): SmtpSecurity | null {
	if (query.size === 0) return scheme === 'smtps' ? 'implicit' : hasUser ? 'required' : 'opportunistic';
	const tls = query.get('tls');
	if (query.size > 1 || scheme === 'smtps') return null;
	return tls === 'never' || tls === 'opportunistic' || tls === 'required' ? tls : null;
}

function decodeUser(encoded: string): string | null {
	try {
		const user = decodeURIComponent(encoded);
		return /[\u0000-\u001f\u007f]/.test(user) ? null : user;
	} catch {
		return null;
	}
}

/** Returns the URL with scheme and host in lower case, without blanks and final slash. Adds a scheme to `HOST:PORT`. */
export function normalSmtpUrl(text: string): string {
	const trimmed = text.trim();
	const port = /^(?:[^\s/?#]*@)?(?:\[[\da-f:.]+\]|[^\s:/?#@[\]]+):(\d{1,5})$/i.exec(trimmed)?.[1];
	const url = port === undefined ? trimmed : `${port === '465' ? 'smtps' : 'smtp'}://${trimmed}`;
	const [, scheme = '', user = '', host = '', rest = ''] =
		/^(smtps?:\/\/)((?:[^/?#]*@)?)([^/?#@]+)\/?(.*)$/is.exec(url) ?? [];
	return scheme === '' ? text : `${scheme.toLowerCase()}${user}${host.toLowerCase()}${rest}`;
}

/** Prefers a name with a dot. Many servers refuse `[127.0.0.1]` and the bare host name of a container. */
export function ehloName(
	{ smtpEhloName, publicUrl }: { smtpEhloName: string | null; publicUrl: string | null },
	sender: string | null,
	machine = hostname(),
): string {
	if (smtpEhloName !== null) return smtpEhloName;
	const host = publicUrl === null ? '' : new URL(publicUrl).hostname;
	const names = [machine, host, sender === null ? '' : domainOf(sender)];
	const isDomain = (name: string) => name.includes('.') && isIP(name) === 0 && isEmailAddress(`x@${name}`);
	return names.find(isDomain) ?? '[127.0.0.1]';
}
