export const maxQuoted = 500;

/** Controls become `\x1b`, spaces and line breaks one space; at most 500 characters. */
export function quote(text: string, secrets: readonly string[]): string {
	// Text beyond the cut is not processed: a page may have megabytes.
	const start = redact(text.slice(0, 8 * maxQuoted), secrets)
		.replace(/\s+/g, ' ')
		.trim();
	const clean = start.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, spell);
	return clean.length > maxQuoted ? `${clean.slice(0, maxQuoted - 1)}…` : clean;
}

export function redact(text: string, secrets: readonly string[]): string {
	const hidden = secrets.reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
	if (!hidden.includes('"')) return hidden;
	return hidden.replace(/("(?:password|secret|token)"\s*:\s*)"(?:[^"\\]|\\.)*"?/gi, '$1"***"');
}

export function withoutPassword(text: string): string {
	if (!text.includes(':/')) return text;
	// One slash is left of two where a URL was taken for a path. The second is a parameter that PostgreSQL takes. A quotation mark is the end of a value in JSON.
	return text
		.replace(/(:\/\/?[^\s/:"]*):[^\s/"]*@/g, '$1:********@')
		.replace(/([?&](?:ssl)?password=)[^\s&#"\\]*/gi, '$1********');
}

/**
 * A text for errors, questions and logs: URLs in it without passwords, web URLs without their user (a token may stand there
 * alone), and parameters without a value where the name speaks of a secret.
 */
export function withoutSecrets(text: string): string {
	if (!text.includes(':/')) return text;
	return withoutPassword(text)
		.replace(/\b((?:https?|ftps?|wss?):\/\/?)[^\s/?#:"@\\]+@/gi, '$1********@')
		.replace(secretParameter, '$1********');
}

const secretParameter =
	/([?&][\w.-]*(?:pass(?:word|wd)?|pwd|token|secret|key|sig(?:nature)?|auth|jwt|credentials?)=)(?!\*{8})[^\s&#"\\]*/gi;

/**
 * A URL that was given, for the error that refuses it: without its user, and no parameter has a value. What is no URL may
 * have been meant as one.
 */
export function shownUrl(text: string): string {
	return text
		.replace(/^([a-z][\w+.-]*:\/\/?)?[^\s/?#"\\]*@/i, '$1********@')
		.replace(/([?&][^\s?&#="]*=)[^\s&#"\\]*/g, '$1********');
}

/** Texts to mask: the token, and passwords of a request's body. Shorter texts occur anywhere. */
export function secretsOf(token: string | null, body: unknown): string[] {
	const password =
		typeof body === 'object' && body !== null && 'password' in body && typeof body.password === 'string'
			? body.password
			: '';
	return [token ?? '', password].filter((secret) => secret.length >= 3);
}

function spell(char: string): string {
	const point = char.codePointAt(0) ?? 0;
	return point < 0x100 ? `\\x${point.toString(16).padStart(2, '0')}` : `\\u{${point.toString(16)}}`;
}

const entities: Readonly<Record<string, string>> = {
	'&': '&amp;',
	'<': '&lt;',
	'>': '&gt;',
	'"': '&quot;',
	"'": '&#39;',
};

/** Safe in text, in quoted attributes, in comments and in style elements. */
export function escapeHtml(text: string): string {
	if (!/[&<>"']/.test(text)) return text;
	return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
