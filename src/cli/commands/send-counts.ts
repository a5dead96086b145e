/** How far a sending is, in words. */
import type { DeliveryCounts } from '../connection.js';

/** `sent 3, bounced 1`. */
export function sentenceOf(counts: DeliveryCounts): string {
	const parts = Object.entries(counts).filter(([name, count]) => count > 0 || name === 'sent');
	return parts.map(([name, count]) => `${name} ${count.toLocaleString('en-US')}`).join(', ');
}

/** Messages that have an outcome. */
export function settledOf(counts: DeliveryCounts): number {
	return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** `1 bounced, 2 deferred`; empty when all is well. */
export function troublesOf({ bounced, failed, deferred }: DeliveryCounts): string {
	const parts = [
		bounced > 0 ? `${bounced} bounced` : '',
		failed > 0 ? `${failed} failed` : '',
		deferred > 0 ? `${deferred} deferred` : '',
	];
	return parts.filter((part) => part !== '').join(', ');
}
