/** Signs what leaves: the domain of From picks the keys. */
import { domainToASCII } from 'node:url';
import { type Clock, type Micros, microsPerSecond } from '../../api/datetime.js';
import type { StoredDkimKey } from '../../store/keys.js';
import type { Reads } from '../../store/store.js';
import { decodeKey } from './keys.js';
import { type SigningKey, signMessage } from './sign.js';

/** Signs a finished message for the address in its From field; without a key of that domain it stays as it is. */
export type SignMail = (bytes: Buffer, from: string) => Promise<Buffer>;

/** Keys that were added or removed count after so long in every process. */
const rereadAfter: Micros = 5 * microsPerSecond;

/**
 * Every key of the domain signs: RSA and Ed25519 side by side, and while keys are exchanged the old one and the new.
 * Rejects only when the store does.
 */
export function createSigner({
	reads,
	clock,
}: {
	reads: Pick<Reads, 'listDkimKeys'>;
	clock: Clock;
}): SignMail {
	let keys: { at: Micros; byDomain: Promise<ReadonlyMap<string, readonly SigningKey[]>> } | null = null;
	let known: readonly HeldKey[] = [];
	const read = async () => {
		known = (await reads.listDkimKeys()).map(
			(stored) => known.find((key) => isSame(key, stored)) ?? heldKey(stored),
		);
		return groupByDomain(known);
	};
	return async (bytes, from) => {
		const now = clock.now();
		if (keys === null || Math.abs(now - keys.at) > rereadAfter) keys = { at: now, byDomain: read() };
		const current = keys;
		const byDomain = await current.byDomain.catch((error: unknown) => {
			// Not remembered: the next message asks again.
			if (keys === current) keys = null;
			throw error;
		});
		return signMessage(bytes, byDomain.get(domainOf(from)) ?? []);
	};
}

/** In ASCII and lower case, as keys are stored. */
export function domainOf(address: string): string {
	const domain = address.slice(address.lastIndexOf('@') + 1);
	return (domainToASCII(domain) || domain).toLowerCase();
}

interface HeldKey extends SigningKey {
	secret: string;
}

function heldKey({ domain, selector, type, secret }: StoredDkimKey): HeldKey {
	return { domain, selector, type, secret, key: decodeKey(secret) };
}

/** Kept, not parsed again: parsing one costs as much as signing three messages. */
function isSame(key: HeldKey, { domain, selector, secret }: StoredDkimKey): boolean {
	return key.domain === domain && key.selector === selector && key.secret === secret;
}

function groupByDomain(keys: readonly SigningKey[]): Map<string, SigningKey[]> {
	const byDomain = new Map<string, SigningKey[]>();
	for (const key of keys) byDomain.set(key.domain, [...(byDomain.get(key.domain) ?? []), key]);
	return byDomain;
}
