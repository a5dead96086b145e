import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import { day, fixedClock, hour, noon, type OpenEmpty } from './fixture.js';

export function describeTokens(open: OpenEmpty): void {
	describe('a store with tokens and keys', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			return () => store.close();
		});
		const create = (sha256: string, name: string, more: { scopes?: string[]; now?: number } = {}) =>
			store.writes.createToken({ sha256, name, scopes: ['read'], now: noon, ...more });

		it('finds a token by the hash of its secret, and returns the token’s scopes', async () => {
			expect(await create('a1', 'shop', { scopes: ['read', 'send'] })).toBe(true);
			expect(await store.reads.findToken({ sha256: 'a1' })).toEqual({
				name: 'shop',
				scopes: ['read', 'send'],
				created_at: noon,
				revoked_at: null,
			});
			expect(await store.reads.findToken({ sha256: 'a2' })).toBeNull();
			expect(await store.reads.findToken({ sha256: '' })).toBeNull();
		});

		it('lists revoked tokens, but no longer finds them by hash', async () => {
			await create('a1', 'shop');
			await create('b1', 'desk', { now: noon + 1 });
			expect(await store.writes.revokeToken({ name: 'shop', now: noon + hour })).toBe(true);
			expect(await store.reads.findToken({ sha256: 'a1' })).toBeNull();
			expect(await store.reads.findToken({ sha256: 'b1' })).toMatchObject({ name: 'desk' });
			expect(await store.reads.listTokens()).toEqual([
				{ name: 'shop', scopes: ['read'], created_at: noon, revoked_at: noon + hour },
				{ name: 'desk', scopes: ['read'], created_at: noon + 1, revoked_at: null },
			]);
		});

		it('adds a new key after 90 days, ahead of the old keys', async () => {
			const ensure = (id: number, now: number) =>
				store.writes.ensureKey({
					purpose: 'tracking',
					fresh: { id, secret: `s${id}` },
					rotateAfter: 90 * day,
					now,
				});
			const ids = async (...asked: Parameters<typeof ensure>) =>
				(await ensure(...asked)).map((key) => key.id);
			expect(await ids(7, noon)).toEqual([7]);
			expect(await ids(8, noon + 89 * day)).toEqual([7]);
			expect(await ids(5, noon + 90 * day)).toEqual([5, 7]);
			expect(await ids(9, noon + 91 * day)).toEqual([5, 7]);
			expect(await ensure(3, noon + 180 * day)).toEqual([
				{ id: 3, secret: 's3', created_at: noon + 180 * day, retires_at: null },
				{ id: 5, secret: 's5', created_at: noon + 90 * day, retires_at: null },
				{ id: 7, secret: 's7', created_at: noon, retires_at: null },
			]);
		});
	});
}
