import { ApiError } from '../../src/api/errors.js';
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

export async function failure(attempt: Promise<unknown>): Promise<ApiError> {
	const error: unknown = await attempt.then(
		() => new Error('did not fail'),
		(reason) => reason,
	);
	if (error instanceof ApiError) return error;
	throw error;
}
