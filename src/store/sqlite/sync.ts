/** The store's operations as a synchronous core has them: same names, same commands, plain results. */
import type { Queue } from '../queue.js';
import type { Reads, Writes } from '../store.js';

export type Sync<T> = {
	[K in keyof T]: T[K] extends (...commands: infer C) => Promise<infer R> ? (...commands: C) => R : never;
};

/** Every operation of a store, for files that implement some of them. */
export type Operations = Sync<Reads & Writes & Queue>;
