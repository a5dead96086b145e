import type { DeliveryOutcome } from '../engine/rules/outcomes.js';
import type { Fence, Leased } from '../store/queue.js';
import type { InFlight } from './leases.js';

export interface Courier {
	readonly window: Pick<InFlight, 'inFlight' | 'isFree' | 'enter'>;
	readonly mostTogether: number;
	readonly mostUnderWay: number;
	readonly leaseBatch: number;
	/** `at_once`: an outcome does not wait for others. `in_groups`: outcomes within 50 ms share a commit. */
	readonly settles: 'at_once' | 'in_groups';
	expect(messages: readonly Leased[]): void;
	/** Rejects only if the store fails. Messages without an outcome were not sent. */
	deliver(group: readonly Leased[], tell: Telling): Promise<void>;
	halt(): void;
	abort(): void;
}

export interface Telling {
	settled(message: Fence, outcome: DeliveryOutcome): void;
	holds(bytes: number): void;
	/** Clears the fault, because the server replied to a message. `isSent`: the server accepted that message. */
	worked(isSent: boolean): void;
	refused(reason: string): void;
	failed(reason: string): void;
}
