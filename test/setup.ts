/**
 * Runs before each test file. The PostgreSQL driver reads PG* variables of this process, so those of a developer are
 * removed. Byte arrays are compared with Buffer.compare, because `toEqual` needs seconds for a database.
 */
import { expect } from 'vitest';

for (const name of Object.keys(process.env)) if (name.startsWith('PG')) delete process.env[name];

expect.addEqualityTesters([
	(one, other) => (one instanceof Uint8Array && other instanceof Uint8Array ? isSame(one, other) : undefined),
]);

function isSame(one: Uint8Array, other: Uint8Array): boolean {
	return one.constructor === other.constructor && Buffer.compare(one, other) === 0;
}
