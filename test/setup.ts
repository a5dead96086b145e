/** Before each file: octets are compared at once. One by one, as `toEqual` does it, those of a database take seconds. */
import { expect } from 'vitest';

expect.addEqualityTesters([
	(one, other) => (one instanceof Uint8Array && other instanceof Uint8Array ? isSame(one, other) : undefined),
]);

function isSame(one: Uint8Array, other: Uint8Array): boolean {
	return one.constructor === other.constructor && Buffer.compare(one, other) === 0;
}
