/** Messages by what became of them. */

/** Those of one run, or of one mailing; a message that was deferred twice in a run counts twice. */
export interface DeliveryCounts {
	sent: number;
	deferred: number;
	bounced: number;
	failed: number;
	/** Nobody can know whether they went out. */
	uncertain: number;
	/** Meanwhile; known where it is asked of one submission or mailing, else 0. */
	canceled: number;
}
