import { canParseUrl } from '../../../api/schema/url.js';
import { mailctl } from '../../frame/command-line.js';
import { UsageError } from '../../frame/errors.js';

/** A base URL, or `null` for a local database. */
export type Base = string | null;

/**
 * Returns path and query to send, beginning with `/`. A URL must have the base URL's origin and prefix, because the
 * token must not go elsewhere. Throws `UsageError`.
 */
export function wirePath(text: string, query: readonly string[], base: Base): string {
	const path = /^[a-z][a-z0-9+.-]*:/i.test(text) ? pathOfUrl(text, base) : pathOfText(text);
	const added = query.map(encodePair).join('&');
	if (added === '') return path;
	return `${path}${path.includes('?') ? '&' : '?'}${added}`;
}

function pathOfText(text: string): string {
	const path = text.startsWith('/') ? text : `/${text}`;
	const url = canParseUrl(`http://localhost${path}`) ? new URL(`http://localhost${path}`) : null;
	const [written = ''] = path.split(/[?#]/, 1);
	// Once resolved, `//host`, `\` and dots could leave the API's prefix.
	if (url === null || /^\/\/|\\/.test(written) || leavesItsFolder(written))
		throw new UsageError(`"${text}" is not a path of the API`, {
			hint: mailctl('api', 'GET', '/sub/lists/'),
		});
	return `${url.pathname}${url.search}`;
}

function leavesItsFolder(path: string): boolean {
	return path.split('/').some((part) => /^(\.|%2e){1,2}$/i.test(part));
}

function pathOfUrl(text: string, base: Base): string {
	if (base === null)
		throw new UsageError('give the path; --base-url takes the URL', {
			hint: mailctl('api', 'GET', '/sub/lists/'),
		});
	const url = canParseUrl(text) ? new URL(text) : null;
	const root = new URL(base);
	const prefix = root.pathname.replace(/(?<!\/)\/+$/, '');
	const isBelow =
		url !== null &&
		url.origin === root.origin &&
		url.username === '' &&
		url.password === '' &&
		url.pathname.startsWith(`${prefix}/`);
	if (isBelow) return pathOfText(`${url.pathname.slice(prefix.length)}${url.search}`);
	throw new UsageError(`"${text}" is not below ${base}; the token goes nowhere else`, {
		hint: 'give the path alone, or another --base-url with its own token',
	});
}

function encodePair(text: string): string {
	const at = text.indexOf('=');
	if (at < 1) throw new UsageError(`--param: "${text}" is not KEY=VALUE`);
	return `${encodeURIComponent(text.slice(0, at))}=${encodeURIComponent(text.slice(at + 1))}`;
}
