/** `/o/{token}.gif`: the pixel. The same picture for every token, valid or not. */
import type { Micros } from '../../api/datetime.js';
import { trackedEvent } from '../../delivery/tracking/events.js';
import type { Happened, TrackingPorts } from '../../delivery/tracking/lookup.js';
import { machineRequest } from '../../delivery/tracking/machines.js';
import { type Keyring, verifyToken } from '../../delivery/tracking/tokens.js';
import type { HttpResponse, PublicRequest } from '../messages.js';
import { commonHeaders } from './pages.js';
import { type Recorder, visitorOf } from './recorder.js';

const gif = Buffer.from('R0lGODlhAQABAPAAAAAAAAAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==', 'base64');

const headers = {
	'Content-Type': 'image/gif',
	'Content-Length': String(gif.length),
	...commonHeaders,
	// Mail in a browser is another site's page, and some of them take only pictures that allow it.
	'Cross-Origin-Resource-Policy': 'cross-origin',
};

/**
 * Without a promise: an open is durable up to 200 ms later, and the picture is the same where it cannot be recorded.
 */
export function pixel(
	{ ports, recorder }: { ports: TrackingPorts; recorder: Recorder },
	request: PublicRequest,
	rest: string,
): HttpResponse {
	const at = ports.now();
	recorder.later((keyring) => opening(keyring, { request, at, token: rest.replace(/\.gif$/, '') }));
	return { status: 200, headers, body: gif };
}

function opening(
	keyring: Keyring | null,
	{ request, at, token }: { request: PublicRequest; at: Micros; token: string },
): Happened | null {
	const message = keyring && verifyToken(keyring, 'o', token);
	if (message === null) return null;
	const { method, headers } = request;
	const machine = machineRequest({ kind: 'open', method, headers }) !== null;
	return trackedEvent({ message, type: 'OPENED', at, link: null, machine, visitor: visitorOf(request) });
}
