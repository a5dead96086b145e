/** Declares a single module to import, because undici's index also loads fetch, WebSocket, caches and mocks. */
declare module 'undici/lib/dispatcher/pool.js' {
	import { Pool } from 'undici';

	export = Pool;
}
