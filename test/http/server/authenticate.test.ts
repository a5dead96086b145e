import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Authenticate, createAuthenticator } from '../../../src/http/server/authenticate.js';

const sha256 = (token: string) => createHash('sha256').update(token).digest('hex');
let now = 0;
let asked: string[] = [];
let stored: Map<string, { name: string; scopes: string[] }>;
let authenticate: Authenticate;

beforeEach(() => {
	now = 0;
	asked = [];
	stored = new Map([[sha256('good'), { name: 'ci', scopes: ['read', 'send', 'fly'] }]]);
	authenticate = createAuthenticator({
		findToken: async (hash) => {
			asked.push(hash);
			return stored.get(hash) ?? null;
		},
		clock: { now: () => now },
	});
});

describe('the look-up of a token in the store', () => {
	it('happens at most once a second, even for concurrent requests', async () => {
		await Promise.all([authenticate('good'), authenticate('good'), authenticate('bad'), authenticate('bad')]);
		now = 999_999;
		await authenticate('good');
		expect(asked.length).toBe(2);
		stored.clear();
		now = 1_000_000;
		expect(await authenticate('good')).toBe(null);
		expect(asked.length).toBe(3);
	});

	it('makes the request fail if the store fails, and the next request tries again', async () => {
		let isBroken = true;
		const shaky = createAuthenticator({
			findToken: async () => {
				if (isBroken) throw new Error('locked');
				return { name: 'ci', scopes: ['read'] };
			},
			clock: { now: () => now },
		});
		await expect(shaky('good')).rejects.toThrow('locked');
		isBroken = false;
		expect(await shaky('good')).toEqual({ name: 'ci', scopes: ['read'] });
	});
});
