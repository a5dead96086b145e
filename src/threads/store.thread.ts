import { systemClock } from '../api/datetime.js';
import { openReader, openStore } from '../store/open.js';
import type { OpenOptions } from '../store/sqlite/store.js';
import type { Store } from '../store/store.js';
import { answerQuestions, type Methods } from './answering.js';

export interface OpenCommand {
	role: 'writer' | 'reader';
	url: string;
	options: Omit<OpenOptions, 'clock'>;
}

let store: Partial<Store> = {};
const methods: Methods = {
	open: async ({ role, url, options }: OpenCommand) => {
		store =
			role === 'reader'
				? await openReader(url, options)
				: await openStore(url, { ...options, clock: systemClock });
		Object.assign(methods, store.reads, store.writes, store.queue);
	},
	close: () => store.close?.(),
};
answerQuestions(methods);
