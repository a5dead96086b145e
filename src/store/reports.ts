/** Queries of reports: daily figures, and how long a campaign ran. */
import type { Day } from '../api/datetime.js';
import type { EventType, Uuid } from '../api/records.js';

export interface ReportReads {
	reportFigures(c: {
		from: Day;
		to: Day;
		campaign: Uuid | null;
		tag: string | null;
		human: boolean;
	}): Promise<ReportFigures>;
	/** `null`: there is no such campaign. */
	campaignLife(c: { campaign: Uuid }): Promise<CampaignLife | null>;
}

/** The figures of a report over a range of days. */
export interface ReportFigures {
	/** Distinct messages by day of their first such event; days and types without events are left out. */
	daily: { day: Day; type: EventType; count: number }[];
	/** Distinct messages of the range that were sent or bounced: the total for the bounce rate. */
	attempted: number;
}

/** The first and the last day with events; null before the first event. */
export interface CampaignLife {
	days: { from: Day; to: Day } | null;
}
