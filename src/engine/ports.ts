/** What the engine needs of the outside world beyond its store; passed in by whoever composes it. */
import type { TestResult, Uuid, Webhook } from '../api/records.js';

/** Passed in by the composition root; each may be slow, none throws for what is expected. */
export interface EnginePorts {
	/** Why a notification must not be sent to this URL, or null. A name that does not resolve is no reason. */
	checkTarget(url: string): Promise<string | null>;
	/** Sends one test notification now, without retries; never throws. */
	notifyTest(webhook: Webhook): Promise<TestResult>;
	/** The finished bytes of a stored message, as its worker would send them; null for an unknown id. */
	renderMessage(id: Uuid): Promise<Buffer | null>;
	/** Why the worker of this process sends nothing at the moment; null where it does, or where none runs. */
	whyPaused(): string | null;
}
