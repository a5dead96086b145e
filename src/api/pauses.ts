/** The API transfers the reason of a pause only as a sentence. These functions write and recognize the sentences. */

const held = 'the queue is paused';
const stalled = 'nothing is sent';
const restored = 'restored from ';

export function heldReason(words: string | null): string {
	return words === null || words === '' ? held : `${held} (${words})`;
}

export function isHeldReason(reason: string | null): boolean {
	return reason?.startsWith(held) ?? false;
}

export function restoredReason(backup: string, waiting: number): string {
	if (waiting === 0) return `${restored}${backup}`;
	const messages = waiting === 1 ? '1 waiting message' : `${waiting} waiting messages`;
	return `${restored}${backup}: ${messages} may have been sent since the backup`;
}

export function pausedBy(reason: string | null): string {
	return reason?.startsWith(restored) ? 'by engine restore' : 'by hand';
}

export function stalledReason(error: unknown): string {
	return `${stalled}: ${error instanceof Error ? error.message : String(error)}`;
}

const refusing = 'the mail server refuses the sender ';

export function refusedSenderReason(sender: string, reply: string): string {
	return `${refusing}${sender}: ${reply}`;
}

/**
 * Expects the reply to a deferred message. A 552 without an enhanced code means too many recipients (RFC 5321
 * s.4.5.3.1.10).
 */
export function isRefusalOfSender(reply: string): boolean {
	return /^5(?!52 (?!5\.))/.test(reply);
}

export function isRefusedSender(reason: string | null): boolean {
	return reason?.startsWith(refusing) ?? false;
}

export const noMailServer = 'no mail server is configured';

/** `login`, `sender`, `server`: the mail server refuses the login, refuses the sender, or fails. */
export type PauseCause = 'hand' | 'restore' | 'process' | 'unset' | 'login' | 'sender' | 'server';

export function causeOf(reason: string): PauseCause {
	if (isHeldReason(reason)) return reason.startsWith(`${held} (${restored}`) ? 'restore' : 'hand';
	if (reason.startsWith(`${stalled}: `)) return 'process';
	if (reason === noMailServer) return 'unset';
	if (isRefusedSender(reason)) return 'sender';
	return aboutLogin.test(reason) ? 'login' : 'server';
}

/** Matches a reply during the login, or a reply with a code of RFC 4954 s.6. */
const aboutLogin = /^auth\b|^\w+: (?:53[0458]\b|\d{3} (?:[45]\.7\.8|5\.7\.11|5\.7\.14)\b)/;

export function pauseSentence(reason: string | null): string {
	if (reason !== null && (isHeldReason(reason) || reason.startsWith(`${stalled}: `))) return reason;
	return faultSentence(reason);
}

export function faultSentence(reason: string | null, since?: string): string {
	const when = since === undefined ? '' : ` since ${since}`;
	if (reason === null || !isRefusedSender(reason))
		return `the mail server is not accepting mail${when}: ${reason ?? 'unknown reason'}`;
	const end = reason.indexOf(': ');
	return `${reason.slice(0, end)}${when}${reason.slice(end)}`;
}
