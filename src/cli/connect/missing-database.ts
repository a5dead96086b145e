import { type Command, driverOf, type Operations, type Parts } from '../../store/operations.js';
import type { Store } from '../../store/store.js';

/** Writes that may find nothing to change in an empty store; no other is asked for without a record that is there. */
const vain: { [Name in keyof Operations]?: (command: Command<Name>) => boolean } = {
	putSettings: ({ values }) => Object.values(values).every((value) => value === null),
	putSuppressions: ({ rows }) => rows.length === 0,
	rewriteSecrets: () => true,
	resume: () => true,
};

/**
 * `empty` is closed with it. A database that cannot be made rejects the write, and the next one tries again. One that
 * another process made (`isThere`) is read from then on.
 */
export function storeMadeOnWrite(
	empty: Store,
	{ isThere, make }: { isThere: () => boolean; make: () => Promise<Store> },
): Store {
	let making: Promise<Store> | null = null;
	const madeStore = () => {
		making ??= make().catch((error: unknown) => {
			making = null;
			throw error;
		});
		return making;
	};
	const readStore = () => making ?? (isThere() ? madeStore() : empty);
	const part = <Part extends keyof Parts>(name: Part, storeOf: () => Store | Promise<Store>): Parts[Part] =>
		driverOf(name, async (operation, command, means) => {
			const isVain = vain[operation as keyof typeof vain] as ((c: unknown) => boolean) | undefined;
			const { [name]: driver } = await (isVain?.(command) === true ? readStore() : storeOf());
			const run = driver[operation as keyof typeof driver] as (c: unknown, m: unknown) => Promise<unknown>;
			return run(command, means);
		});
	return {
		reads: part('reads', readStore),
		writes: part('writes', madeStore),
		queue: part('queue', madeStore),
		close: async () => {
			await empty.close();
			await (await making)?.close();
		},
	};
}
