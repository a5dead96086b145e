import { setFlagsFromString } from 'node:v8';
import type { Dispatcher, Pool as PoolType } from 'undici';
import Pool from 'undici/lib/dispatcher/pool.js';

/** In Node 20, V8 takes 55 ms to optimize undici's parser after the first answer. This budget delays that. */
const parserBudget = '--wasm-tiering-budget=200000000';

export function openPool(origin: string, options: PoolType.Options): Dispatcher {
	if (process.versions.node.startsWith('20.')) setFlagsFromString(parserBudget);
	return new Pool(origin, options);
}
