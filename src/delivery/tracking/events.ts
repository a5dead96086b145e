/** Turns a request for one of a message's links into the event that is recorded: bounded, cleaned, labelled. */
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { TrackedEvent } from '../../store/store.js';
import { tooSoon } from './machines.js';

/** The facts in a request about its sender. */
export interface Visitor {
	ip: string | null;
	userAgent: string | null;
}

export interface Happening {
	message: Uuid;
	type: 'OPENED' | 'REDIRECTED' | 'UNSUBSCRIBED';
	at: Micros;
	/** Position and target of a click; null else. */
	link: { position: number; url: string } | null;
	machine: boolean;
	visitor: Visitor;
}

const maxUserAgent = 500;
/** The longest IPv6 address with an IPv4 tail, and room for a zone. */
const maxIp = 64;
const maxUrl = 2048;

/** An event for the store. Values of the request are cut to size and cleaned of control characters. */
export function trackedEvent({ message, type, at, link, machine, visitor }: Happening): TrackedEvent {
	return {
		message,
		type,
		at,
		link: link?.position ?? null,
		machine,
		...(type !== 'UNSUBSCRIBED' && { too_soon: tooSoon }),
		ip: clean(visitor.ip, maxIp),
		user_agent: clean(visitor.userAgent, maxUserAgent),
		url: clean(link?.url ?? null, maxUrl),
		smtp_code: null,
		diagnostic: null,
	};
}

/** Null for a text that is empty afterwards. Never ends with half a surrogate pair. */
function clean(text: string | null, maxLength: number): string | null {
	const printable = (text ?? '').slice(0, maxLength * 2).replace(/[\p{Cc}\p{Cs}\u2028\u2029]+/gu, ' ');
	const cut = printable.trim().slice(0, maxLength);
	return cut === '' ? null : cut.replace(/[\ud800-\udbff]$/, '');
}
