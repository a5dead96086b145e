/** The dependencies of the engine beyond its store. */

import type { TestResult, Uuid, Webhook } from '../api/records.js';
import type { RefusalCode } from '../api/refusals.js';

/** Passed in by the composition root; each may be slow, and none throws for expected failures. */
export interface EnginePorts {
	/** Why a webhook delivery must not go to this URL, or null. A name that does not resolve is accepted. */
	checkTarget(url: string): Promise<RefusalCode | null>;
	/** Sends one test webhook delivery now, without retries; never throws. */
	notifyTest(webhook: Webhook): Promise<TestResult>;
	/** The finished bytes of a stored message, as its worker would send them; null for an unknown id. */
	renderMessage(id: Uuid): Promise<Buffer | null>;
	/** Why the worker of this process sends nothing at the moment; null where it sends, or where none runs. */
	whyPaused(): string | null;
}
