/** Which header fields a signature names, and how often (RFC 6376 s.5.4). */
import type { HeaderField } from './canonical.js';

/**
 * Named once more than they are there, absent ones too: a second Subject or a Reply-To that somebody adds on the way
 * would otherwise pass under our signature (RFC 6376 s.8.15).
 */
const sealed = [
	'From',
	'Reply-To',
	'To',
	'Cc',
	'Subject',
	'Date',
	'Message-ID',
	'MIME-Version',
	'Content-Type',
	'Content-Transfer-Encoding',
];
/** Sealed where they are there; a relay may add its own where they are not. RFC 8058 s.4 wants the first two signed. */
const signedIfPresent =
	/^(?:list-unsubscribe|list-unsubscribe-post|list-.+|content-.+|in-reply-to|references|feedback-id|auto-submitted)$/;

export interface SignedFields {
	/** The h= tag: names, in the order of signing. */
	names: string[];
	/** The texts of those that are there, in that order: of several with one name the lowest comes first (s.5.4.2). */
	texts: string[];
}

/** `fields` from the top down. */
export function signedFields(fields: readonly HeaderField[]): SignedFields {
	const isSealed = new Set(sealed.map((name) => name.toLowerCase()));
	const others = fields
		.filter(({ name }) => !isSealed.has(name) && signedIfPresent.test(name))
		.map(({ text }) => text.slice(0, text.indexOf(':')).trimEnd());
	const signed: SignedFields = { names: [], texts: [] };
	const seen = new Set<string>();
	for (const name of [...sealed, ...others]) {
		if (seen.has(name.toLowerCase())) continue;
		seen.add(name.toLowerCase());
		const present = fields.filter((field) => field.name === name.toLowerCase()).reverse();
		signed.texts.push(...present.map(({ text }) => text));
		signed.names.push(...Array<string>(present.length + 1).fill(name));
	}
	return signed;
}
