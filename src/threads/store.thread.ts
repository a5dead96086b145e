import { parentPort } from 'node:worker_threads';
import { systemClock } from '../api/datetime.js';
import { openReader, openStore } from '../store/open.js';
import type { Means, Store } from '../store/store.js';
import {
	type Answer,
	formatFailure,
	type OpenCommand,
	type Operation,
	pack,
	Stopped,
	unpack,
} from './remote.js';

type Run = (command: unknown, means?: Means) => Promise<unknown>;

let parts: Partial<Store> = {};
const answers: Answer[] = [];
/** Operations begin in order, and `close` comes last. */
let turn: Promise<void> = Promise.resolve();
const longMs = 1;

async function begin(operations: readonly Operation[]): Promise<void> {
	let since = performance.now();
	for (const operation of operations) {
		void answer(operation);
		if (performance.now() - since <= longMs) continue;
		await new Promise((resolve) => setImmediate(resolve));
		since = performance.now();
	}
}

const stopping = new Map<number, AbortController>();

async function answer(operation: Operation): Promise<void> {
	const { id, isStoppable } = operation;
	try {
		const value = await run(operation, isStoppable ? stoppableBy(id) : undefined);
		post({ id, kind: 'value', value });
	} catch (error) {
		post({ id, kind: 'failure', failure: formatFailure(error) });
	} finally {
		stopping.delete(id);
	}
}

function stoppableBy(id: number): Means {
	const stop = new AbortController();
	stopping.set(id, stop);
	return { signal: stop.signal };
}

async function run({ part, method, command }: Operation, means: Means | undefined): Promise<unknown> {
	const own = part === 'thread' ? threadOperations : (parts[part] as Record<string, Run> | undefined);
	const operation = own?.[method];
	if (operation === undefined) throw new Error(`this thread has no ${part}.${method}`);
	if (part === 'thread') return operation(command);
	return pack(method, await operation(unpack(method, command), means));
}

const threadOperations: Record<string, Run> = {
	open: async (command) => {
		const { role, url, options } = command as OpenCommand;
		parts =
			role === 'reader'
				? await openReader(url, options)
				: await openStore(url, { ...options, clock: systemClock });
	},
	stop: async (id) => {
		stopping.get(Number(id))?.abort(new Stopped());
	},
	close: async () => {
		await parts.close?.();
	},
};

function post(one: Answer): void {
	answers.push(one);
	if (answers.length === 1) process.nextTick(() => parentPort?.postMessage(answers.splice(0)));
}

parentPort?.on('message', (operations: readonly Operation[]) => {
	turn = turn.then(() => begin(operations));
});
