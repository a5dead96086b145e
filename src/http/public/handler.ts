/** The public addresses of a mail: pixel, links, unsubscribing, the mail in a browser (api-decisions 39). */
import { createClickWindow } from '../../delivery/tracking/machines.js';
import type { TrackingPorts } from '../../delivery/tracking/ports.js';
import type { HttpResponse, PublicHandler, PublicRequest } from '../messages.js';
import { click } from './click.js';
import { open } from './open.js';
import { commonHeaders, notFoundPage } from './pages.js';
import { createRecorder } from './recorder.js';
import { texts } from './texts.js';
import { unsubscribe } from './unsubscribe.js';
import { view } from './view.js';

/** The pages of one server. Never throw: a store that fails is a page that says so, or a pixel like any other. */
export interface PublicPages extends PublicHandler {
	atOnce(request: PublicRequest): HttpResponse | null;
	/** Resolves when every open and click that was answered is recorded, or lost: wait for it before the store is closed. */
	settled(): Promise<void>;
}

/** One for a server: it holds what is still to be recorded, and clicks for their window. A path of no page is null. */
export function createPublicHandler(ports: TrackingPorts): PublicPages {
	const recorder = createRecorder(ports);
	const visits = { ports, recorder, window: createClickWindow() };
	const handler: PublicHandler = async (request) => {
		const [, kind, rest = ''] = /^\/([ocuv])\/(.*)$/s.exec(request.path) ?? [];
		switch (kind) {
			case 'o':
				return allowed(request, ['GET', 'HEAD'], async () => open(visits, request, rest));
			case 'c':
				return allowed(request, ['GET', 'HEAD'], () => click(visits, request, rest));
			case 'u':
				return allowed(request, ['GET', 'HEAD', 'POST'], () => unsubscribe(ports, request, rest));
			case 'v':
				return allowed(request, ['GET', 'HEAD'], () => view(ports, rest));
			default:
				return kind === undefined ? null : notFoundPage();
		}
	};
	const atOnce = (request: PublicRequest) =>
		request.method === 'GET' && request.path.startsWith('/o/')
			? open(visits, request, request.path.slice(3))
			: null;
	return Object.assign(handler, { atOnce, settled: recorder.settled });
}

async function allowed(
	request: PublicRequest,
	methods: readonly string[],
	answer: () => Promise<HttpResponse>,
): Promise<HttpResponse> {
	if (!methods.includes(request.method)) {
		const headers = {
			'Content-Type': 'text/plain; charset=utf-8',
			...commonHeaders,
			Allow: methods.join(', '),
		};
		return { status: 405, headers, body: `${texts.wrongMethod}\n` };
	}
	const answered = await answer();
	return request.method === 'HEAD' ? withoutBody(answered) : answered;
}

function withoutBody(answer: HttpResponse): HttpResponse {
	const length = answer.body === null ? 0 : Buffer.byteLength(answer.body);
	return { ...answer, headers: { ...answer.headers, 'Content-Length': String(length) }, body: null };
}
