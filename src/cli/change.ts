/** What every update does alike. */
import { UsageError } from './errors.js';

/** An update without anything to update is a mistake, not a success. */
export function assertChange(change: object, flags: readonly string[]): void {
	if (Object.keys(change).length === 0)
		throw new UsageError(`nothing to change: give one of ${flags.join(', ')}`);
}
