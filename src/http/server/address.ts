/** Where a request comes from. */
import { isIP } from 'node:net';
import type { One, Serving } from './serving.js';

/** The socket's address, or what the proxy in front says of it: its last word, the others are the client's own. */
export function clientIp(
	{ trustProxy }: Pick<Serving, 'trustProxy'>,
	{ request, connection }: Pick<One, 'request' | 'connection'>,
): string | null {
	const forwarded = String(request.headers['x-forwarded-for'] ?? '');
	const last = trustProxy === true ? forwarded.split(',').at(-1)?.trim() : undefined;
	const address = last !== undefined && isIP(last) !== 0 ? last : connection.remoteAddress;
	return address === null ? null : plainAddress(address);
}

/** An IPv4 client of a socket that takes both is an IPv4 client. */
export function plainAddress(address: string): string {
	return address.replace(/^::ffff:(?=\d+\.)/, '');
}
