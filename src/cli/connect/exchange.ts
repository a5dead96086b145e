/** The wire of an embedded database: what a server over it would answer, without a socket. */
import type { WireRequest, WireResponse } from '../../api/wire.js';
import type { Engine } from '../../engine/engine.js';
import { createLocalExchange } from '../../http/server/exchange.js';
import { createHandler } from '../../http/server/handler.js';

declare const __VERSION__: string;

/** Who owns the database may do everything; a token of the request itself is looked at as a server would, and refused. */
export function exchangeLocally(engine: Engine, request: WireRequest): Promise<WireResponse> {
	const owner = 'the owner of the database';
	const handler = createHandler({
		served: { api: engine, ext: engine.ext },
		version: __VERSION__,
		extensions: Object.keys(engine.ext).sort(),
		authenticate: async (token) => (token === owner ? { name: owner, scopes: ['admin'] } : null),
	});
	return createLocalExchange(handler, owner)(request);
}
