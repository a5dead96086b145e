/** How far a sending is, in words. */
import type { MailingStatus } from '../../../api/capabilities.js';
import type { DeliveryCounts } from '../../../api/delivery-counts.js';

/** `1 recipient`, `20,000 recipients`. */
export function countOf(count: number, noun: string): string {
	return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}

/** A job's messages that have an outcome, whichever run recorded it. */
export function outcomesOf(messages: MailingStatus['messages']): DeliveryCounts {
	const { sent = 0, deferred = 0, bounced = 0, failed = 0, uncertain = 0, canceled = 0 } = messages;
	return { sent, deferred, bounced, failed, uncertain, canceled };
}

/** `20,000 sent, 7,071 of them now, 1 bounced`: all runs of a job, and this one; without it just the first number. */
export function progressOf(counts: DeliveryCounts, before: DeliveryCounts | null): string {
	const { sent, ...others } = counts;
	const now = before === null ? '' : `, ${number(sent - before.sent)} of them now`;
	const rest = Object.entries(others).filter(([, count]) => count > 0);
	return [`${number(sent)} sent${now}`, ...rest.map(([name, count]) => `${number(count)} ${name}`)].join(
		', ',
	);
}

/** `sent 3, bounced 1`. */
export function sentenceOf(counts: DeliveryCounts): string {
	const parts = Object.entries(counts).filter(([name, count]) => count > 0 || name === 'sent');
	return parts.map(([name, count]) => `${name} ${number(count)}`).join(', ');
}

/** A job's messages that nothing has become of yet. */
export function waitingOf({ staged = 0, queued = 0, leased = 0 }: MailingStatus['messages']): number {
	return staged + queued + leased;
}

/** Of so many messages, those without one; `counts` null: nobody waited for any. */
export function leftOf(total: number, counts: DeliveryCounts | null): number {
	return total - (counts === null ? 0 : settledOf(counts));
}

/** Messages that have an outcome. */
export function settledOf(counts: DeliveryCounts): number {
	return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** `1 bounced, 2 deferred`; empty when all is well. */
export function troublesOf({ bounced, failed, deferred }: DeliveryCounts): string {
	const parts = [
		bounced > 0 ? `${number(bounced)} bounced` : '',
		failed > 0 ? `${number(failed)} failed` : '',
		deferred > 0 ? `${number(deferred)} deferred` : '',
	];
	return parts.filter((part) => part !== '').join(', ');
}

function number(count: number): string {
	return count.toLocaleString('en-US');
}

/** What a run that waits for a limit says. */
export function limitedUntil(until: Date): string {
	return `limits hold back what is left until ${until.toISOString().slice(0, 19)}Z; it is waited for, and stays queued when this is interrupted`;
}
