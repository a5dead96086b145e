/**
 * GET changes nothing, because programs follow links; POST unsubscribes (RFC 8058). The token is the right.
 */
import { ApiError } from '../../api/errors.js';
import { trackedEvent } from '../../delivery/tracking/events.js';
import type { TrackingPorts } from '../../delivery/tracking/lookup.js';
import type { HttpResponse, PublicRequest } from '../messages.js';
import {
	commonHeaders,
	failedPage,
	maskedAddress,
	notFoundPage,
	type Scope,
	senderName,
	unsubscribedPage,
	unsubscribePage,
} from './pages.js';
import { presentationOf } from './presentation.js';
import { messageOf, visitorOf } from './visits.js';

export async function unsubscribe(
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
		if (isOneClick) return oneClickAnswer();
		return unsubscribedPage(presentation, scope === 'all' ? { ...reader, list: null } : reader);
	} catch (error) {
		// The server answers an error of the request.
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

/** Read after the token was verified: a form for an unknown page takes no memory. */
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

function oneClickAnswer(): HttpResponse {
	const headers = { 'Content-Type': 'text/plain; charset=utf-8', ...commonHeaders };
	return { status: 200, headers, body: 'Unsubscribed.\n' };
}
