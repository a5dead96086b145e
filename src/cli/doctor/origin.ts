/** What answers at a base URL, and where the right one may be. Answers of strangers are read without trust. */

import type { WireResponse } from '../../api/api.js';
import { isRecord } from '../../api/json.js';
import { canParseUrl } from '../../api/schema/url.js';
import { mailctl, type OwnCommand, targetWords } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';

/** Below every right base URL. */
export const listsPath = '/sub/lists/';

/** What a mailctl server says of itself at `/`; null: it is another service. */
export function descriptionOf({
	status,
	body,
}: WireResponse): { version: string; extensions: string[] } | null {
	const json = status === 200 ? jsonOf(body) : null;
	if (!isRecord(json) || json['service'] !== 'mailctl') return null;
	const { version, extensions } = json;
	const names = isRecord(extensions) ? Object.keys(extensions) : Array.isArray(extensions) ? extensions : [];
	return {
		version: textOf(version) ?? 'of no version',
		// More than any version has.
		extensions: names.flatMap((name) => textOf(name) ?? []).slice(0, 50),
	};
}

/** The parsed JSON; null also for other content. */
export function jsonOf(body: Uint8Array): unknown {
	try {
		return JSON.parse(new TextDecoder().decode(body));
	} catch {
		return null;
	}
}

/** At most a hundred characters of a text that is not empty, else null. */
export function textOf(value: unknown): string | null {
	return typeof value === 'string' && value !== '' ? short(value) : null;
}

/** Its beginning: a report is not the place for megabytes. */
export function short(text: string): string {
	return text.length <= 100 ? text : `${text.slice(0, 99)}…`;
}

/** The base URL that a redirect of `listsPath` leads to; null: another place, or the same one. */
export function movedBase(baseUrl: string, location: string): string | null {
	const base = new URL(baseUrl);
	const prefixOfBase = base.pathname.replace(/(?<!\/)\/+$/, '');
	const asked = new URL(prefixOfBase + listsPath, base);
	if (!canParseUrl(location, asked.href)) return null;
	const { protocol, username, password, origin, pathname } = new URL(location, asked);
	if (!/^https?:$/.test(protocol) || username !== '' || password !== '') return null;
	const prefix = pathname.replace(/\/sub\/lists\/?$/, '');
	const isHostAlone = pathname === '/' && origin !== base.origin;
	if (prefix === pathname && !isHostAlone) return null;
	const moved = origin + (isHostAlone ? '' : prefix);
	return moved === base.origin + prefixOfBase ? null : moved;
}

/** The answer is worth a hint and no wait. */
const longestWaitMs = 2_000;

/** Without a token. The origin where a mailctl server answers; null: none does at once, or the base URL has no path. */
export async function serverAtOrigin(
	cx: Pick<CommandContext, 'connectTo'>,
	baseUrl: string,
	signal: AbortSignal,
): Promise<string | null> {
	const { origin, pathname } = new URL(baseUrl);
	if (pathname === '/') return null;
	const { exchange, close } = await cx.connectTo({ kind: 'remote', baseUrl: origin, token: null });
	try {
		const soon = AbortSignal.any([signal, AbortSignal.timeout(longestWaitMs)]);
		return descriptionOf(await exchange({ method: 'GET', path: '/', token: null, signal: soon })) && origin;
	} catch {
		return null;
	} finally {
		await close();
	}
}

/** The command that goes to another base URL. A stored token stays with its origin: at another one it takes a login. */
export function moveTo(
	{ settings, globals }: Pick<CommandContext, 'settings' | 'globals'>,
	from: string,
	to: string,
): OwnCommand {
	const { profile } = settings.target;
	if (profile === null) return mailctl(...targetWords({ ...globals, baseUrl: to }), 'doctor');
	const named = ['--profile', profile];
	return new URL(from).origin === new URL(to).origin
		? mailctl('config', 'set', ...named, 'base-url', to)
		: mailctl('login', ...named, '--base-url', to);
}
