/**
 * `/u/{token}`: GET asks and changes nothing, because programs follow links; POST unsubscribes (RFC 8058). There is no
 * cookie and no CSRF token: the token in the address is all the right there is to this one act, it is known only to
 * those who have the mail, and a form of another site that has it could post it without any page of ours.
 */
import { trackedEvent } from '../../delivery/tracking/events.js';
import type { TrackedMessage, TrackingPorts } from '../../delivery/tracking/ports.js';
import { verifyToken } from '../../delivery/tracking/tokens.js';
import type { HttpResponse, PublicRequest } from '../messages.js';
import { commonHeaders, failedPage, notFoundPage, unsubscribedPage, unsubscribePage } from './pages.js';
import { maskedAddress, senderName } from './reader.js';
import { texts } from './texts.js';
import { visitorOf } from './visitor.js';

/** `token` as it stands in the path; a bad one is a 404. Never throws: a store that fails is a 503 (`ports.failed`). */
export async function unsubscribe(
	ports: TrackingPorts,
	request: PublicRequest,
	token: string,
): Promise<HttpResponse> {
	try {
		const keyring = await ports.keyring();
		const id = keyring && verifyToken(keyring, 'u', token);
		const message = id === null ? null : await ports.find(id);
		if (message === null) return notFoundPage();
		if (request.method !== 'POST') {
			return unsubscribePage({ ...reader(message), list: await ports.listName(message) });
		}
		// Answered only when it is durable: nobody who was told so gets another mailing.
		await ports.record(
			trackedEvent({
				message: message.id,
				type: 'UNSUBSCRIBED',
				at: ports.now(),
				link: null,
				machine: false,
				visitor: visitorOf(request),
			}),
		);
		return isOneClick(request) ? oneClickAnswer() : unsubscribedPage(reader(message));
	} catch (error) {
		ports.failed?.(error);
		return failedPage(request.method === 'POST' ? 'unsubscribe' : 'look');
	}
}

function reader({ to, from }: TrackedMessage) {
	return { address: maskedAddress(to), sender: senderName(from), list: null };
}

/** A mail program's POST, urlencoded or multipart: it wants no page. Any other POST is the form's, and as good. */
function isOneClick({ headers, body }: PublicRequest): boolean {
	if (body === null) return false;
	const text = Buffer.from(body).toString('latin1');
	if (/^multipart\/form-data\b/i.test(headers['content-type'] ?? '')) {
		return /name="?List-Unsubscribe"?\s/i.test(text) && text.includes('One-Click');
	}
	return new URLSearchParams(text).get('List-Unsubscribe') === 'One-Click';
}

function oneClickAnswer(): HttpResponse {
	const headers = { 'Content-Type': 'text/plain; charset=utf-8', ...commonHeaders };
	return { status: 200, headers, body: `${texts.unsubscribed.oneClick}\n` };
}
