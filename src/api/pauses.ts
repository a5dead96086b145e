/** How a pause by a person is told where only a sentence travels (`SendingProgress.paused`). */

const held = 'the queue is paused';

/** `words` are the person's own; null = none were given. */
export function heldReason(words: string | null): string {
	return words === null || words === '' ? held : `${held} (${words})`;
}

/** Whether a reason is a person's pause, and not a mail server that takes nothing. */
export function isHeldReason(reason: string | null): boolean {
	return reason?.startsWith(held) ?? false;
}
