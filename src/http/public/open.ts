/** `/o/{token}.gif`: the pixel. Whatever is asked for, the same picture is the answer. */
import type { Micros } from '../../api/datetime.js';
import { trackedEvent } from '../../delivery/tracking/events.js';
import { machineRequest } from '../../delivery/tracking/machines.js';
import type { TrackingPorts } from '../../delivery/tracking/ports.js';
import { verifyToken } from '../../delivery/tracking/tokens.js';
import type { HttpResponse, PublicRequest } from '../messages.js';
import { commonHeaders } from './pages.js';
import type { Recorder } from './recorder.js';
import { visitorOf } from './visitor.js';

/** One transparent point. */
const gif = Buffer.from('R0lGODlhAQABAPAAAAAAAAAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==', 'base64');

/** Answers at once: an open is durable up to 200 ms later, and one that cannot be recorded is still a picture. */
export async function open(
	{ ports, recorder }: { ports: TrackingPorts; recorder: Recorder },
	request: PublicRequest,
	rest: string,
): Promise<HttpResponse> {
	const at = ports.now();
	recorder.later(() => record(ports, { request, at, token: rest.replace(/\.gif$/, '') }));
	return { status: 200, headers, body: gif };
}

const headers = {
	'Content-Type': 'image/gif',
	...commonHeaders,
	// Mail in a browser is another site's page, and some of them take only pictures that allow it.
	'Cross-Origin-Resource-Policy': 'cross-origin',
};

interface Opening {
	request: PublicRequest;
	at: Micros;
	token: string;
}

async function record(ports: TrackingPorts, { request, at, token }: Opening): Promise<void> {
	const keyring = await ports.keyring();
	const message = keyring && verifyToken(keyring, 'o', token);
	if (message === null) return;
	const { method, headers } = request;
	const machine = machineRequest({ kind: 'open', method, headers }) !== null;
	const visitor = visitorOf(request);
	await ports.record(trackedEvent({ message, type: 'OPENED', at, link: null, machine, visitor }));
}
