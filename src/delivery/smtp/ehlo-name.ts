/** The name that this side says in EHLO. */
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { domainOf, isEmailAddress } from '../../api/address.js';

/**
 * The setting; else the first with a dot of this machine's name, the host of the public URL and the sender's domain. A
 * container's name has none, and many servers refuse it, as they refuse `[127.0.0.1]`, which is left where nothing else is.
 */
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
