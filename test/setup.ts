/**
 * Before each file. The driver of PostgreSQL reads variables of the process, whatever environment a command is given:
 * a developer's are none of the tests'. Octets are compared at once: one by one, as `toEqual` does it, those of a
 * database take seconds.
 */
import { expect } from 'vitest';

for (const name of Object.keys(process.env)) if (name.startsWith('PG')) delete process.env[name];

expect.addEqualityTesters([
	(one, other) => (one instanceof Uint8Array && other instanceof Uint8Array ? isSame(one, other) : undefined),
]);

function isSame(one: Uint8Array, other: Uint8Array): boolean {
	return one.constructor === other.constructor && Buffer.compare(one, other) === 0;
}
