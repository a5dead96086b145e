/** A base URL with a path too many: the root of its host is asked whether the service is there. */
import type { CommandContext } from '../frame/context.js';
import { descriptionOf } from './untrusted-json.js';

/** Without a token. The origin where a mailctl server answers; null: none does, or the base URL has no path. */
export async function serverAtOrigin(
	cx: Pick<CommandContext, 'connectTo'>,
	baseUrl: string,
	signal: AbortSignal,
): Promise<string | null> {
	const { origin, pathname } = new URL(baseUrl);
	if (pathname === '/') return null;
	const { exchange, close } = await cx.connectTo({ kind: 'remote', baseUrl: origin, token: null });
	try {
		return descriptionOf(await exchange({ method: 'GET', path: '/', token: null, signal })) && origin;
	} catch {
		return null;
	} finally {
		await close();
	}
}
