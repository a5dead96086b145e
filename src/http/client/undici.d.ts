/** The file of undici that is loaded by itself: its index brings fetch, WebSocket, caches and mocks along. */
declare module 'undici/lib/dispatcher/pool.js' {
	import { Pool } from 'undici';

	export = Pool;
}
