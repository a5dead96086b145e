/** `/v/{token}`: the mail in a browser, without links and pixel of ours: looking at it is not counted. */
import type { TrackingPorts } from '../../delivery/tracking/lookup.js';
import { verifyToken } from '../../delivery/tracking/tokens.js';
import type { HttpResponse, PublicRequest } from '../messages.js';
import { commonHeaders, failedPage, notFoundPage, textMessagePage } from './pages.js';
import { presentationOf } from './presentation.js';

/** The author's HTML is not trusted: no script, no form, no frame; links work. */
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

export async function view(
	ports: TrackingPorts,
	request: PublicRequest,
	token: string,
): Promise<HttpResponse> {
	try {
		const keyring = await ports.keyring();
		const id = keyring && verifyToken(keyring, 'v', token);
		const message = id === null ? null : await ports.find(id);
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
