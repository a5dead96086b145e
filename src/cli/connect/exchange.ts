import type { WireRequest, WireResponse } from '../../api/api.js';
import type { Engine } from '../../engine/engine.js';
import { exchangeInProcess } from '../../http/server/exchange.js';
import { createHandler } from '../../http/server/handler.js';

declare const __VERSION__: string;

/**
 * Answers a request as a server would. A request without a token has all rights, because the caller owns the database.
 * Throws errors of the database, which a server would answer with a 500.
 */
export async function exchangeLocally(engine: Engine, request: WireRequest): Promise<WireResponse> {
	const owner = 'the owner of the database';
	const failures: unknown[] = [];
	const handler = createHandler({
		api: engine,
		ext: engine.ext,
		encoded: engine.encoded,
		version: __VERSION__,
		extensions: Object.keys(engine.ext).sort(),
		failed: (error) => void failures.push(error),
		authenticate: async (token) => (token === owner ? { name: owner, scopes: ['admin'] } : null),
	});
	const answer = await exchangeInProcess(handler, owner)(request);
	if (failures.length > 0) throw failures[0];
	return answer;
}
