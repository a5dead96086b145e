/** `/c/{token}`: counts a click and redirects to the link of the mail. Never to any other address. */
import { trackedEvent } from '../../delivery/tracking/events.js';
import type { TrackedMessage, TrackingPorts } from '../../delivery/tracking/lookup.js';
import { type ClickWindow, machineRequest } from '../../delivery/tracking/machines.js';
import { verifyClickToken } from '../../delivery/tracking/tokens.js';
import type { HttpResponse, PublicRequest } from '../messages.js';
import { commonHeaders, failedPage, notFoundPage } from './pages.js';
import { presentationOf } from './presentation.js';
import { type Recorder, visitorOf } from './recorder.js';

export interface Visits {
	ports: TrackingPorts;
	recorder: Recorder;
	window: ClickWindow;
}

/** A click is recorded after the response, as an open is: the reader does not wait for the disk. */
export async function click(
	{ ports, recorder, window }: Visits,
	request: PublicRequest,
	token: string,
): Promise<HttpResponse> {
	const at = ports.now();
	const followed = await follow(ports, token).catch((error: unknown) => {
		ports.failed?.(error);
		return 'failed' as const;
	});
	if (followed === 'failed') return failedPage(await presentationOf(ports, request), null);
	if (followed === null) return notFoundPage(await presentationOf(ports, request));
	const { message, link } = followed;
	// The window gets every click, including those of machines recognised by other signs.
	const isBurst = window.isBurst({ message: message.id, link: link.position, at });
	const { method, headers } = request;
	const machine = isBurst || machineRequest({ kind: 'click', method, headers }) !== null;
	const visitor = visitorOf(request);
	const event = trackedEvent({ message: message.id, type: 'REDIRECTED', at, link, machine, visitor });
	recorder.later(() => event);
	return { status: 302, headers: { Location: link.url, ...commonHeaders }, body: null };
}

interface Followed {
	message: TrackedMessage;
	link: { position: number; url: string };
}

async function follow(ports: TrackingPorts, token: string): Promise<Followed | null> {
	const keyring = await ports.keyring();
	const verified = keyring && verifyClickToken(keyring, token);
	if (verified === null) return null;
	const message = await ports.find(verified.message);
	if (message === null) return null;
	const url = await ports.link(message, verified.link);
	return url === null ? null : { message, link: { position: verified.link, url } };
}
