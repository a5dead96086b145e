/** The public addresses that every message may carry. */
import type { Uuid } from '../../api/records.js';
import { type Keyring, signToken } from './tokens.js';

export interface PublicLinks {
	unsubscribe_url: string;
	view_url: string;
}

/** `publicUrl` with or without a path and a final slash; `{publicUrl}/u/{token}` and `/v/{token}`. */
export function publicLinks(c: { publicUrl: string; keyring: Keyring; message: Uuid }): PublicLinks {
	const base = c.publicUrl.replace(/\/+$/, '');
	return {
		unsubscribe_url: `${base}/u/${signToken(c.keyring, 'u', c.message)}`,
		view_url: `${base}/v/${signToken(c.keyring, 'v', c.message)}`,
	};
}
