/** undici's index loads fetch, WebSocket, caches and mocks too. */
declare module 'undici/lib/dispatcher/pool.js' {
	import { Pool } from 'undici';

	export = Pool;
}
