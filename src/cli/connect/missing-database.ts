/** A store whose database is not there yet: read as an empty one, and made by the first write. */
import { driverOf, type Parts } from '../../store/operations.js';
import type { Store } from '../../store/store.js';

/** `empty` is closed with it. A database that cannot be made rejects the write, and the next one tries again. */
export function storeMadeOnWrite(empty: Store, make: () => Promise<Store>): Store {
	let making: Promise<Store> | null = null;
	const madeStore = () => {
		making ??= make().catch((error: unknown) => {
			making = null;
			throw error;
		});
		return making;
	};
	const part = <Part extends keyof Parts>(name: Part, storeOf: () => Store | Promise<Store>): Parts[Part] =>
		driverOf(name, async (operation, command, means) => {
			const { [name]: driver } = await storeOf();
			// Both tables have the same operations.
			const run = driver[operation as keyof typeof driver] as (c: unknown, m: unknown) => Promise<unknown>;
			return run(command, means);
		});
	return {
		reads: part('reads', () => making ?? empty),
		writes: part('writes', madeStore),
		queue: part('queue', madeStore),
		close: async () => {
			await empty.close();
			await (await making)?.close();
		},
	};
}
