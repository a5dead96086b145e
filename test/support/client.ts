/** What a client is given in tests: short pauses, no retries, nobody who reads traces. */
import type { ClientOptions } from '../../src/http/client/client.js';

export interface ClientWishes extends Partial<Omit<ClientOptions, 'remote'>> {
	baseUrl: string;
	remote?: Partial<ClientOptions['remote']>;
}

export function clientOptions({ remote, ...wishes }: ClientWishes): ClientOptions {
	return {
		token: 'a-secret-token',
		env: {},
		trace: () => {},
		warn: () => {},
		random: () => 0,
		...wishes,
		remote: { timeoutMs: 60_000, retries: 0, caCert: null, insecure: false, proxy: null, ...remote },
	};
}
