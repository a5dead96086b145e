/** Ingestion of bounces: requests and results. Types alone. */

/** Returned mails. */
export interface IngestRequest {
	/** A mail, an mbox, a folder of such files, a Maildir; or a stream of one mail or an mbox. */
	from: { path: string } | { stream: AsyncIterable<Buffer> };
	/** Nothing is recorded, nothing is moved. */
	dryRun: boolean;
	signal: AbortSignal;
	/** Told of each bounce and complaint that counts. */
	onRecorded: (recorded: RecordedBounce) => void;
	/** Told of a file in a folder that could not be read, and by which error of the system: `EACCES`. */
	onUnreadable: (file: string, code: string) => void;
}

/** Mails by outcome; `read` is the sum of all other counts except the last. */
export interface IngestCounts {
	read: number;
	/** Recorded: the first of its kind for its message. */
	bounces: number;
	complaints: number;
	/** Reported before: no change. */
	duplicates: number;
	/** Delays, receipts, feedback that is no complaint. */
	notices: number;
	auto_replies: number;
	/** About no known message, or about none of its recipients. */
	unmatched: number;
	not_reports: number;
	/** Their messages are being sent at this moment: to be brought again. */
	in_flight: number;
	/** Files of a folder or a Maildir that could not be read, and are where they were. */
	unreadable: number;
}

/** The effect of a bounce or complaint, and its recipient: of several the message's own, else the first. */
export interface RecordedBounce {
	effect: 'hard_bounce' | 'soft_bounce' | 'complaint';
	/** As addresses are compared. */
	address: string;
}
