export const maxQuoted = 500;

/** The result is safe to print on a terminal. */
export function quote(text: string, secrets: readonly string[]): string {
	// Cut the text first, because a page may have megabytes.
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
	// Also match `:/`, because path normalization shortens `://`. A PostgreSQL URL may have a password in its query.
	return text
		.replace(/(:\/\/?[^\s/:"]*):[^\s/"]*@/g, '$1:********@')
		.replace(/([?&](?:ssl)?password=)[^\s&#"\\]*/gi, '$1********');
}

/** Also hides values of parameters such as `token`, and user names in web URLs, because a user name may be a token. */
export function withoutSecrets(text: string): string {
	if (!text.includes(':/')) return text;
	return withoutPassword(text)
		.replace(/\b((?:https?|ftps?|wss?):\/\/?)[^\s/?#:"@\\]+@/gi, '$1********@')
		.replace(secretParameter, '$1********');
}

const secretParameter =
	/([?&][\w.-]*(?:pass(?:word|wd)?|pwd|token|secret|key|sig(?:nature)?|auth|jwt|credentials?)=)(?!\*{8})[^\s&#"\\]*/gi;

/** For errors about a URL: removes its user and the values of all parameters. */
export function shownUrl(text: string): string {
	return text
		.replace(/^([a-z][\w+.-]*:\/\/?)?[^\s/?#"\\]*@/i, '$1********@')
		.replace(/([?&][^\s?&#="]*=)[^\s&#"\\]*/g, '$1********');
}

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

/** The result is safe in HTML text, quoted attributes, comments and style elements. */
export function escapeHtml(text: string): string {
	if (!/[&<>"']/.test(text)) return text;
	return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
