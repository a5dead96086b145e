/** Who a token belongs to: by its hash, asked of the store at most once a second. */
import { createHash } from 'node:crypto';
import { type Clock, type Micros, microsPerSecond } from '../../api/datetime.js';
import { type Scope, scopes } from '../routes.js';

/** Whom a request comes from. */
export interface Principal {
	/** The token's name. */
	name: string;
	scopes: readonly Scope[];
}

/** Null: no living token is this one. */
export type Authenticate = (token: string) => Promise<Principal | null>;

export interface AuthenticatorOptions {
	/** The living token of this hash (hex), or null. */
	findToken(sha256: string): Promise<{ name: string; scopes: readonly string[] } | null>;
	clock: Clock;
}

/** A revoked token is refused a second later at the latest; so is a new one let in. */
const keepFor: Micros = microsPerSecond;
/** Answers kept; whoever tries many tokens fills this and no more. */
const maxKept = 10_000;
/** Longer ones are never ours: not worth hashing. */
const maxTokenLength = 512;

interface Kept {
	until: Micros;
	principal: Promise<Principal | null>;
}

/**
 * The store's failure is the caller's, and is not kept. Scopes unknown to this version allow nothing.
 * Only hashes are looked up and compared, here and in the store: how long that takes tells nothing of a token.
 */
export function createAuthenticator({ findToken, clock }: AuthenticatorOptions): Authenticate {
	const kept = new Map<string, Kept>();
	const ask = async (sha256: string): Promise<Principal | null> => {
		const found = await findToken(sha256);
		return found === null
			? null
			: { name: found.name, scopes: scopes.filter((one) => found.scopes.includes(one)) };
	};
	return async (token) => {
		if (token === '' || token.length > maxTokenLength) return null;
		const key = createHash('sha256').update(token).digest('hex');
		const now = clock.now();
		const known = kept.get(key);
		if (known !== undefined && known.until > now) return known.principal;
		const principal = ask(key);
		// Put at the end: the first of the map are the oldest.
		kept.delete(key);
		makeRoom(kept, now);
		kept.set(key, { until: now + keepFor, principal });
		principal.catch(() => kept.delete(key));
		return principal;
	};
}

/** Drops what is out of date, then the oldest: a Map keeps the order of insertion. */
function makeRoom(kept: Map<string, Kept>, now: Micros): void {
	for (const [key, { until }] of kept) {
		if (until > now && kept.size < maxKept) return;
		kept.delete(key);
	}
}
