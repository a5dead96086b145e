import type { Uuid } from '../api/records.js';
import type { ReadHtml } from '../content/read-html.js';
import type { StoredSubmission } from '../store/campaigns.js';
import type { StoredKey } from '../store/maintenance.js';
import type { Leased } from '../store/queue.js';
import type { KeysFor, SigningKey } from './dkim/sign.js';
import type { Mail } from './smtp/transaction.js';

export interface ComposingSettings {
	publicUrl: string | null;
	keys: readonly StoredKey[];
	bounceAddress: string | null;
}

export interface MailSource {
	submission: StoredSubmission;
	read: ReadHtml | null;
	keys: readonly SigningKey[];
}

export interface LentMail {
	mail: Mail;
	release(): void;
}

export interface Ahead {
	expect(source: MailSource, messages: readonly Leased[]): void;
	/** Once; mails expected before it are forgotten. Null: not composed, and perhaps impossible to compose. */
	take(message: Uuid): LentMail | Promise<LentMail | null> | null;
	keysFor: KeysFor;
}

/** Fewer neighbours are not worth a message to a thread. */
const leastTogether = 10;

export async function composeAhead(
	ahead: Ahead,
	messages: readonly Leased[],
	{
		sourceOf,
		mayGo,
	}: {
		sourceOf: (message: Leased) => Promise<MailSource | null>;
		mayGo: (submission: StoredSubmission, message: Leased) => boolean;
	},
): Promise<void> {
	for (let first = 0; first < messages.length; ) {
		const message = messages[first];
		if (message === undefined) return;
		const after = messages.findIndex(({ submission }, at) => at > first && submission !== message.submission);
		const end = after === -1 ? messages.length : after;
		const source = end - first < leastTogether ? null : await sourceOf(message);
		if (source !== null) {
			const { submission } = source;
			const together = messages.slice(first, end).filter((each) => mayGo(submission, each));
			if (together.length >= leastTogether) ahead.expect(source, together);
		}
		first = end;
	}
}
