/** A base URL with a path too many: the root of its host is asked whether the service is there. */
import { canParseUrl } from '../../api/schema/url.js';
import { mailctl, type OwnCommand, targetWords } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { descriptionOf } from './untrusted-json.js';

/** What a question for lists goes to, below the base URL. */
export const listsPath = '/sub/lists/';

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
