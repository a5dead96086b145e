import { setFlagsFromString } from 'node:v8';
import type { Dispatcher, Pool as PoolType } from 'undici';
import Pool from 'undici/lib/dispatcher/pool.js';

/** Delays the optimization of undici's HTTP parser, which takes 55 ms after the first answer. Long commands still get it. */
const parserBudget = '--wasm-tiering-budget=200000000';

export function openPool(origin: string, options: PoolType.Options): Dispatcher {
	if (process.versions.node.startsWith('20.')) setFlagsFromString(parserBudget);
	return new Pool(origin, options);
}
