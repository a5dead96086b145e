/** The addresses a command on suppressions is about. */
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { assertAddress } from '../../verbs/address-faults.js';
import { nameOrCount, namesOf } from '../../verbs/bulk.js';

/** The argument of `add` and `remove`. */
export const addressesArg = {
	name: 'address',
	summary: 'e-mail addresses; - reads them from standard input, one a line',
	many: true,
	of: 'address',
	ask: 'E-mail addresses:',
} as const;

/** Each once, however often it is named; all are looked at before anything is done. Throws `UsageError`. */
export async function readAddresses(
	cx: CommandContext,
	texts: readonly string[],
): Promise<readonly string[]> {
	const found = new Map<string, string>();
	for await (const text of namesOf(cx, texts)) {
		const { address, key } = assertAddress(text);
		found.set(key, address);
	}
	if (found.size === 0) throw new UsageError('no address was given');
	return [...found.values()];
}

/** `ann@example.com`, `3 addresses`. */
export function describeAddresses(addresses: readonly string[]): string {
	return nameOrCount(addresses, 'addresses');
}
