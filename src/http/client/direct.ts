import { setFlagsFromString } from 'node:v8';
import type { Dispatcher, Pool as PoolType } from 'undici';
import Pool from 'undici/lib/dispatcher/pool.js';

/** Keeps Node 20 from optimizing undici's HTTP parser after one answer, which takes 55 ms; imports are still optimized. */
const parserBudget = '--wasm-tiering-budget=200000000';

export function openPool(origin: string, options: PoolType.Options): Dispatcher {
	if (process.versions.node.startsWith('20.')) setFlagsFromString(parserBudget);
	return new Pool(origin, options);
}
