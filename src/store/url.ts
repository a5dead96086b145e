import { lstatSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../api/errors.js';
import { canParseUrl } from '../api/schema/url.js';

export function isPostgres(url: string): boolean {
	return /^postgres(ql)?:\/\//i.test(url);
}

export function foreignScheme(url: string): string | null {
	const [, scheme = null] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url) ?? [];
	return isPostgres(url) ? null : scheme;
}

/** True for a text that looks like the address of a database server but is not a `postgres://` URL. */
export function isLikeServer(text: string): boolean {
	return !isPostgres(text) && likeServers.some((form) => form.test(text.trim()));
}

const likeServers = [
	/^(?:postgres(?:ql)?|pg)(?::|\/\/)/i,
	/^jdbc:/i,
	/^(?:\/\/)?(?![a-z]:[\\/])[^/:@]+:[^/].*@/i,
	/(?:^|[\s;])(?:host|hostaddr|port|dbname|user|service|sslmode|server|data source|PG[A-Z]+)\s*=/i,
	/(?:pass(?:w(?:or)?d|phrase)?|pwd|secret)["']?\s*[=:]/i,
];

/**
 * True if the password has an unescaped `/`, `?` or `#`. A URL parser ends the authority there, so messages would show
 * the rest of the password.
 */
export function hasBarePassword(url: string): boolean {
	return /^\w+:\/\/[^/?#@]*:[^/?#@]*[/?#].*@/.test(url);
}

function splitAtHosts(url: string): [before: string, hosts: string, after: string] {
	const [, before = '', hosts = '', after = ''] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s.exec(url) ?? [];
	return [before, hosts, after];
}

export function urlsOf(url: string): string[] {
	const [before, hosts, after] = splitAtHosts(url);
	return hosts.includes(',') ? hosts.split(',').map((host) => `${before}${host}${after}`) : [url];
}

export function shownDatabase(url: string): string {
	const scheme = isPostgres(url) ? 'postgres' : foreignScheme(url);
	if (scheme === null) return isLikeServer(url) ? '…' : url;
	const urls = urlsOf(url);
	if (!urls.every((one) => canParseUrl(one))) return `${scheme}://…`;
	const [shown = new URL(url), ...others] = urls.map((one) => new URL(one));
	if (hasBarePassword(url)) return `${scheme}://…`;
	shown.password = '';
	for (const name of [...shown.searchParams.keys()])
		if (/pass|pwd|secret/i.test(name)) shown.searchParams.delete(name);
	if (others.length === 0) return shown.href;
	const [before, , after] = splitAtHosts(shown.href);
	return `${before}${[shown, ...others].map(({ host }) => host).join(',')}${after}`;
}

export function forServerPrograms(url: string): { url: string; schema: string } {
	const [first = url] = urlsOf(shownDatabase(url));
	if (!canParseUrl(first)) return { url: first, schema: 'public' };
	const named = new URL(first);
	const schema = named.searchParams.get('schema') ?? 'public';
	for (const own of ['schema', 'pool', 'listen']) named.searchParams.delete(own);
	return { url: named.href, schema };
}

/** True if the path is missing; false for a broken link or forbidden folder, because opening reports those. */
export function isMissingFile(url: string): boolean {
	return !isPostgres(url) && isMissing(url);
}

function isMissing(path: string): boolean {
	if (!isAbsent(path, lstatSync)) return false;
	const folder = dirname(path);
	return folder === path || isMissing(folder) || !isAbsent(folder, statSync);
}

function isAbsent(path: string, look: (path: string) => unknown): boolean {
	try {
		look(path);
		return false;
	} catch (error) {
		return codeOf(error) === 'ENOENT';
	}
}
