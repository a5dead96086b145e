/** DKIM keys of the embedded engine: made or read here, kept in its keyring, shown by their public halves. */
import { type Clock, formatDateTime } from '../../api/datetime.js';
import { generateKey, parseKey, recordNameOf, recordOf, zoneLineOf } from '../../delivery/dkim/keys.js';
import type { StoredDkimKey } from '../../store/keys.js';
import type { Store } from '../../store/store.js';
import type { DkimKey, LocalEngine } from '../frame/connection.js';
import { UsageError } from '../frame/errors.js';

/** The store stays its owner’s. A key is made, or its PEM read, before anything is written. */
export function localDkim({ store, clock }: { store: Store; clock: Clock }): LocalEngine['dkim'] {
	return {
		list: async () => (await store.reads.listDkimKeys()).map(toDkimKey),
		add: async ({ domain, selector, source }) => {
			const material = 'pem' in source ? fromPem(source.pem) : await generateKey(source.type);
			const now = clock.now();
			const isAdded = await store.writes.addDkimKey({ domain, selector, ...material, now });
			return isAdded ? toDkimKey({ domain, selector, ...material, created_at: now }) : null;
		},
		remove: (key) => store.writes.removeDkimKey(key),
	};
}

function fromPem(pem: string) {
	const parsed = parseKey(pem);
	if (parsed.kind === 'key') return parsed.material;
	throw new UsageError(`--key-file: ${parsed.message}`, {
		hint: 'openssl genrsa 2048 makes one; without --key-file one is made here',
	});
}

function toDkimKey(stored: StoredDkimKey): DkimKey {
	const { domain, selector, type, created_at } = stored;
	const name = recordNameOf(stored);
	const value = recordOf(stored);
	return {
		domain,
		selector,
		type,
		date_created: formatDateTime(created_at),
		dns_name: name,
		dns_value: value,
		dns_record: zoneLineOf(name, value),
	};
}
