import type { Micros } from '../../api/datetime.js';
import { trackedEvent, type Visitor } from '../../delivery/tracking/events.js';
import type { Happened, TrackedMessage, TrackingPorts } from '../../delivery/tracking/lookup.js';
import { type ClickWindow, machineRequest } from '../../delivery/tracking/machines.js';
import { type Keyring, verifyClickToken, verifyToken } from '../../delivery/tracking/tokens.js';
import type { HttpResponse, PublicRequest } from '../wire.js';
import { commonHeaders, failedPage, notFoundPage, presentationOf } from './pages.js';

type MakeEvent = (keyring: Keyring | null) => Happened | null;
type RecordingPorts = Pick<TrackingPorts, 'keyring' | 'record' | 'failed'>;

/** Suffices for a thousand events a second while the store is locked for 20 s. */
const maxUnderWay = 20_000;

/** Drops new events while `maxUnderWay` wait, to limit memory. */
export class Recorder {
	readonly #ports: RecordingPorts;
	#waiting: MakeEvent[] = [];
	#underWay = 0;
	#idle: (() => void)[] = [];

	constructor(ports: RecordingPorts) {
		this.#ports = ports;
	}

	later(makeEvent: MakeEvent): void {
		if (this.#underWay >= maxUnderWay) {
			const text = `an open or click was lost: the queue of ${maxUnderWay} events is full`;
			this.#ports.failed?.(new Error(text));
			return;
		}
		this.#underWay += 1;
		if (this.#waiting.length === 0) setImmediate(() => this.#begin());
		this.#waiting.push(makeEvent);
	}

	async #begin(): Promise<void> {
		const events = this.#waiting.splice(0);
		await recordAll(this.#ports, events).catch((error: unknown) => this.#ports.failed?.(error));
		this.#underWay -= events.length;
		if (this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve();
	}

	async settled(): Promise<void> {
		if (this.#underWay > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
	}
}

async function recordAll(
	{ keyring, record, failed }: RecordingPorts,
	events: readonly MakeEvent[],
): Promise<void> {
	const keys = await keyring();
	const recorded = new Set<Promise<void>>();
	for (const makeEvent of events) {
		const event = makeEvent(keys);
		if (event !== null) recorded.add(record(event));
	}
	for (const outcome of await Promise.allSettled(recorded))
		if (outcome.status === 'rejected') failed?.(outcome.reason);
}

export function visitorOf({ ip, headers }: PublicRequest): Visitor {
	return { ip, userAgent: headers['user-agent'] ?? null };
}

const gif = Buffer.from('R0lGODlhAQABAPAAAAAAAAAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==', 'base64');

const headers = {
	'Content-Type': 'image/gif',
	'Content-Length': String(gif.length),
	...commonHeaders,
	// Some webmail sites load pictures from other sites only with this header.
	'Cross-Origin-Resource-Policy': 'cross-origin',
};

/** Synchronous, because the picture is always the same. The store commits the open up to 200 ms later. */
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

interface Visits {
	ports: TrackingPorts;
	recorder: Recorder;
	window: ClickWindow;
}

/** Records the click after the response, so that the reader does not wait for the disk. */
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
	// `isBurst` records the click, so call it even for a known bot.
	const isBurst = window.isBurst({ message: message.id, link: link.position, at });
	const { method, headers } = request;
	const machine = isBurst || machineRequest({ kind: 'click', method, headers }) !== null;
	const visitor = visitorOf(request);
	const event = trackedEvent({ message: message.id, type: 'REDIRECTED', at, link, machine, visitor });
	recorder.later(() => event);
	return { status: 302, headers: { Location: link.url, ...commonHeaders }, body: null };
}

async function follow(ports: TrackingPorts, token: string) {
	const keyring = await ports.keyring();
	const verified = keyring && verifyClickToken(keyring, token);
	if (verified === null) return null;
	const message = await ports.find(verified.message);
	if (message === null) return null;
	const url = await ports.link(message, verified.link);
	return url === null ? null : { message, link: { position: verified.link, url } };
}

export async function messageOf(
	ports: TrackingPorts,
	kind: 'u' | 'v',
	token: string,
): Promise<TrackedMessage | null> {
	const keyring = await ports.keyring();
	const id = keyring && verifyToken(keyring, kind, token);
	return id === null ? null : ports.find(id);
}
