import { ApiError } from '../../api/errors.js';
import { trackedEvent } from '../../delivery/tracking/events.js';
import type { TrackingPorts } from '../../delivery/tracking/lookup.js';
import { ClickWindow } from '../../delivery/tracking/machines.js';
import { headOf } from '../server/respond.js';
import type { HttpResponse, PublicHandler, PublicRequest } from '../wire.js';
import {
	commonHeaders,
	failedPage,
	maskedAddress,
	notFoundPage,
	presentationOf,
	type Scope,
	senderName,
	textMessagePage,
	unsubscribedPage,
	unsubscribePage,
} from './pages.js';
import { click, messageOf, pixel, Recorder, visitorOf } from './visits.js';

/** Throws an `ApiError` only for a faulty request. If the store fails, pages report an error, but the pixel works. */
export interface PublicPages extends PublicHandler {
	synchronously(request: PublicRequest): HttpResponse | null;
	settled(): Promise<void>;
}

export function createPublicHandler(ports: TrackingPorts): PublicPages {
	const recorder = new Recorder(ports);
	const visits = { ports, recorder, window: new ClickWindow() };
	const handler: PublicHandler = async (request) => {
		const [, kind, rest = ''] = /^\/([ocuv])\/(.*)$/s.exec(request.path) ?? [];
		switch (kind) {
			case 'o':
				return allowed(request, ['GET', 'HEAD'], async () => pixel(visits, request, rest));
			case 'c':
				return allowed(request, ['GET', 'HEAD'], () => click(visits, request, rest));
			case 'u':
				return allowed(request, ['GET', 'HEAD', 'POST'], () => unsubscribe(ports, request, rest));
			case 'v':
				return allowed(request, ['GET', 'HEAD'], () => view(ports, request, rest));
			default:
				return kind === undefined ? null : notFoundPage(await presentationOf(ports, request));
		}
	};
	const synchronously = (request: PublicRequest) =>
		request.method === 'GET' && request.path.startsWith('/o/')
			? pixel(visits, request, request.path.slice(3))
			: null;
	return Object.assign(handler, { synchronously, settled: () => recorder.settled() });
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
		return { status: 405, headers, body: 'This link does not accept this kind of request.\n' };
	}
	const answered = await answer();
	return request.method === 'HEAD' ? headOf(answered) : answered;
}

/** Blocks scripts, forms and frames in the author's HTML, which is untrusted. Links still work. */
const policy = [
	"default-src 'none'",
	'img-src * data:',
	"style-src 'unsafe-inline'",
	'font-src *',
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
	'sandbox allow-popups allow-popups-to-escape-sandbox',
].join('; ');

/** Shows the mail without tracked links and pixel, so that viewing it counts as neither click nor open. */
async function view(ports: TrackingPorts, request: PublicRequest, token: string): Promise<HttpResponse> {
	try {
		const message = await messageOf(ports, 'v', token);
		const shown = message && (await ports.view(message));
		if (shown === null) return notFoundPage(await presentationOf(ports, request));
		if (shown.html === null) return textMessagePage(await presentationOf(ports, request), shown);
		const headers = {
			'Content-Type': 'text/html; charset=utf-8',
			'Content-Security-Policy': policy,
			...commonHeaders,
		};
		return { status: 200, headers, body: shown.html };
	} catch (error) {
		ports.failed?.(error);
		return failedPage(await presentationOf(ports, request), null);
	}
}

/** Only POST unsubscribes (RFC 8058), because mail scanners follow links with GET. The token authorizes the request. */
async function unsubscribe(
	ports: TrackingPorts,
	request: PublicRequest,
	token: string,
): Promise<HttpResponse> {
	let form: Form | null = null;
	try {
		const message = await messageOf(ports, 'u', token);
		if (message === null) return notFoundPage(await presentationOf(ports, request));
		const list = await ports.listName(message);
		const presentation = await presentationOf(ports, request);
		const sender = presentation.branding.name ?? senderName(message.from);
		const reader = { address: maskedAddress(message.to), sender, list };
		if (request.method !== 'POST') return unsubscribePage(presentation, reader);
		form = await readForm(request);
		const { scope, isOneClick } = form;
		await ports.record({
			...trackedEvent({
				message: message.id,
				type: 'UNSUBSCRIBED',
				at: ports.now(),
				link: null,
				machine: false,
				visitor: visitorOf(request),
			}),
			...(scope === 'all' && { from_all_lists: true }),
		});
		if (isOneClick) {
			const headers = { 'Content-Type': 'text/plain; charset=utf-8', ...commonHeaders };
			return { status: 200, headers, body: 'Unsubscribed.\n' };
		}
		return unsubscribedPage(presentation, scope === 'all' ? { ...reader, list: null } : reader);
	} catch (error) {
		// The HTTP server turns an `ApiError` into a response.
		if (error instanceof ApiError) throw error;
		ports.failed?.(error);
		const presentation = await presentationOf(ports, request);
		if (request.method !== 'POST') return failedPage(presentation, null);
		return failedPage(presentation, (form ?? (await readForm(request))).scope);
	}
}

interface Form {
	scope: Scope;
	isOneClick: boolean;
}

/** Call this only after verifying the token, so that forms with invalid tokens take no memory. */
async function readForm({ headers, body }: PublicRequest): Promise<Form> {
	const text = Buffer.from((await body?.()) ?? '').toString('latin1');
	if (/^multipart\/form-data\b/i.test(headers['content-type'] ?? '')) {
		const isOneClick = /name="?List-Unsubscribe"?\s/i.test(text) && text.includes('One-Click');
		return { scope: 'list', isOneClick };
	}
	const fields = new URLSearchParams(text);
	const isOneClick = fields.get('List-Unsubscribe') === 'One-Click';
	return { scope: !isOneClick && fields.get('scope') === 'all' ? 'all' : 'list', isOneClick };
}
