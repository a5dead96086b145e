/** The public addresses of a mail: pixel, links, unsubscribing, the mail in a browser (api-decisions 39). */
import { createClickWindow } from '../../delivery/tracking/machines.js';
import type { TrackingPorts } from '../../delivery/tracking/ports.js';
import type { HttpResponse, PublicHandler, PublicRequest } from '../messages.js';
import { click } from './click.js';
import { open } from './open.js';
import { commonHeaders, notFoundPage } from './pages.js';
import { texts } from './texts.js';
import { unsubscribe } from './unsubscribe.js';
import { view } from './view.js';

/** Never throws: a store that fails is a page that says so, or a pixel like any other. */
export function createPublicHandler(ports: TrackingPorts): PublicHandler {
	const window = createClickWindow();
	return async (request) => {
		const [, kind, rest = ''] = /^\/([ocuv])\/(.*)$/s.exec(request.path) ?? [];
		switch (kind) {
			case 'o':
				return allowed(request, ['GET', 'HEAD'], () => open(ports, request, rest));
			case 'c':
				return allowed(request, ['GET', 'HEAD'], () => click(ports, window, { request, token: rest }));
			case 'u':
				return allowed(request, ['GET', 'HEAD', 'POST'], () => unsubscribe(ports, request, rest));
			case 'v':
				return allowed(request, ['GET', 'HEAD'], () => view(ports, rest));
			default:
				return kind === undefined ? null : notFoundPage();
		}
	};
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
