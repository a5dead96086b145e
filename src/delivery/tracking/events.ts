import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { Writes } from '../../store/operations.js';
import type { TrackedEvent } from '../../store/store.js';
import { tooSoon } from './machines.js';

export interface Visitor {
	ip: string | null;
	userAgent: string | null;
}

export interface Happening {
	message: Uuid;
	type: 'OPENED' | 'REDIRECTED' | 'UNSUBSCRIBED';
	at: Micros;
	link: { position: number; url: string } | null;
	machine: boolean;
	visitor: Visitor;
}

const maxUserAgent = 500;
const maxIp = 64;
const maxUrl = 2048;

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

function clean(text: string | null, maxLength: number): string | null {
	const printable = (text ?? '').slice(0, maxLength * 2).replace(/[\p{Cc}\p{Cs}\u2028\u2029]+/gu, ' ');
	const cut = printable.trim().slice(0, maxLength);
	return cut === '' ? null : cut.replace(/[\ud800-\udbff]$/, '');
}

/** Maximum time that a batch waits for more events. The store may then wait longer, for other writes. */
const maxDelayMs = 10;
const maxEvents = 200;

interface Batch {
	readonly events: TrackedEvent[];
	readonly recorded: Promise<void>;
	send(): void;
}

/** The promise settles when the batch of the event is stored. */
export function createEventWriter(
	writes: Pick<Writes, 'recordEvents'>,
): (event: TrackedEvent) => Promise<void> {
	let open: Batch | null = null;

	const startBatch = (): Batch => {
		const events: TrackedEvent[] = [];
		let send: () => void = () => undefined;
		const recorded = new Promise<void>((resolve, reject) => {
			send = () => {
				clearTimeout(timer);
				open = null;
				writes.recordEvents({ events }).then(resolve, reject);
			};
		});
		const timer = setTimeout(() => send(), maxDelayMs);
		return { events, recorded, send };
	};

	return (event) => {
		if (event.type !== 'OPENED' && event.type !== 'REDIRECTED')
			return writes.recordEvents({ events: [event] });
		open ??= startBatch();
		const { events, recorded, send } = open;
		events.push(event);
		if (events.length >= maxEvents) send();
		return recorded;
	};
}
