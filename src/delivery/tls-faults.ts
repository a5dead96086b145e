/** What stands in the way of TLS with the mail server, and what mends it: the library's words name neither. */
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { SmtpSettings } from './settings.js';

/** A sentence for what is known; null: the error says as much as we could. */
export function tlsFault(error: SMTPConnection.SMTPError, settings: SmtpSettings): string | null {
	const { originalCode, code } = { originalCode: undefined, ...error };
	const cause = String(originalCode ?? code ?? '');
	if (settings.security === 'implicit' && isClear.test(error.message)) {
		return 'the server does not speak TLS from the first byte: smtp:// instead of smtps:// in smtp_url takes STARTTLS';
	}
	if (cause === 'ERR_TLS_CERT_ALTNAME_INVALID') return wrongName(error, settings);
	if (untrusted.has(cause)) return notVouchedFor(settings);
	return lifetimes[cause]?.(settings) ?? null;
}

/** TLS is wanted, and the server did not offer it when it was greeted. */
export function noStartTls(settings: SmtpSettings): string {
	const { because, otherwise } = whyTls(settings);
	return `the server offers no STARTTLS, and ${because}: give smtp_url a port that speaks TLS (smtps://), or ${otherwise}`;
}

function whyTls({ user, ca }: SmtpSettings): { because: string; otherwise: string } {
	const inClear = 'end it with ?tls=never';
	if (user !== null) return { because: 'no password is said in clear', otherwise: inClear };
	if (ca !== null) return { because: 'with smtp_ca nothing is sent in clear', otherwise: 'unset smtp_ca' };
	return { because: 'smtp_url says tls=required', otherwise: inClear };
}

/** Of OpenSSL, for an answer that is no TLS. */
const isClear = /wrong version number|packet length too long/i;

/** Of OpenSSL's verification: nobody, or nobody trusted, has signed it. */
const untrusted: ReadonlySet<string> = new Set([
	'SELF_SIGNED_CERT_IN_CHAIN',
	'DEPTH_ZERO_SELF_SIGNED_CERT',
	'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
	'UNABLE_TO_GET_ISSUER_CERT',
	'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
	'CERT_SIGNATURE_FAILURE',
	'CERT_UNTRUSTED',
	'INVALID_CA',
]);

function notVouchedFor({ host, ca }: SmtpSettings): string {
	return ca === null
		? `no authority that this machine trusts has signed the certificate of ${host}: the certificate of your own authority belongs in smtp_ca`
		: `no certificate in smtp_ca has signed the certificate of ${host}: set smtp_ca to that of the authority that has`;
}

function wrongName(error: Error, { host }: SmtpSettings): string {
	const names = 'cert' in error ? namesOf(error.cert) : [];
	const said = names.length === 0 ? 'another name' : names.join(', ');
	return `the certificate of the mail server is for ${said}, not for ${host}: smtp_url must use a name that it is for`;
}

const mostNames = 3;

/** `DNS:a.example, IP Address:192.0.2.1` as the names alone. */
function namesOf(certificate: unknown): string[] {
	if (typeof certificate !== 'object' || certificate === null || !('subjectaltname' in certificate))
		return [];
	const names = String(certificate.subjectaltname).split(', ');
	const shown = names.slice(0, mostNames).map((name) => name.replace(/^[A-Za-z ]+:/, ''));
	return names.length > mostNames ? [...shown, '…'] : shown;
}

const lifetimes: Readonly<Record<string, (settings: SmtpSettings) => string>> = {
	CERT_HAS_EXPIRED: ({ host, ca }) =>
		`the certificate of ${host} has expired, or one that signed it${ca === null ? '' : ', which may be in smtp_ca'}: it has to be renewed there`,
	CERT_NOT_YET_VALID: ({ host }) =>
		`the certificate of ${host} is not valid yet: the clock of this machine may be wrong`,
};
