/** The commands that say from whom and to whom a mail goes. */
import { isAscii } from 'node:buffer';
import { domainToASCII } from 'node:url';
import type { Conversation, Mail } from '../conversation.js';
import { localReply } from '../reply.js';

/** EHLO keywords in upper case with their parameters, `''` without any. */
export type SmtpExtensions = ReadonlyMap<string, string>;

export type Envelope =
	| {
			kind: 'envelope';
			/** MAIL FROM, RCPT TO for the recipient and then for each copy. */
			commands: readonly string[];
	  }
	| { kind: 'unsendable'; conversation: Conversation };

/** `unsendable`: too large for this server, or an address that it cannot be told. */
export function envelopeOf(mail: Mail, extensions: SmtpExtensions): Envelope {
	const from = asciiDomain(mail.from);
	const recipients = [asciiDomain(mail.to), ...mail.copies.map(asciiDomain)];
	const addresses = [from, ...recipients];
	// Checked long before; here a mistake would be somebody else's command.
	if (addresses.some((address) => /[\r\n\0<>]/.test(address)) || recipients.includes(''))
		return unsendable('an address holds a line break or an angle bracket, or is empty');
	const isInternational = !addresses.every(isPlain);
	if (isInternational && !extensions.has('SMTPUTF8'))
		return unsendable('the address needs SMTPUTF8, which the server does not offer');
	const size = extensions.get('SIZE');
	// SIZE without a number, or 0, sets no limit (RFC 1870 s.4).
	const maxBytes = Number(size ?? 0);
	if (maxBytes > 0 && mail.bytes.length > maxBytes)
		return unsendable(`the message has ${mail.bytes.length} bytes, the server takes ${maxBytes}`);
	let first = `MAIL FROM:<${from}>`;
	if (isInternational) first += ' SMTPUTF8';
	if (extensions.has('8BITMIME') && !isAscii(mail.bytes)) first += ' BODY=8BITMIME';
	if (size !== undefined) first += ` SIZE=${mail.bytes.length}`;
	return { kind: 'envelope', commands: [first, ...recipients.map((address) => `RCPT TO:<${address}>`)] };
}

function unsendable(text: string): Envelope {
	const reply = localReply('mail', text);
	return { kind: 'unsendable', conversation: { kind: 'unsendable', reply, refusedCopies: [] } };
}

/** The domain in punycode, so that SMTPUTF8 is needed for the local part alone. */
function asciiDomain(address: string): string {
	const at = address.lastIndexOf('@');
	if (at < 0 || isPlain(address)) return address;
	const domain = address.slice(at + 1);
	return `${address.slice(0, at)}@${domainToASCII(domain) || domain}`;
}

function isPlain(address: string): boolean {
	return /^[\u0020-\u007e]*$/.test(address);
}
