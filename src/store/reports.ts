/** Queries of reports: daily figures, how long a campaign ran, and clicks by link. */
import type { Day } from '../api/datetime.js';
import type { EventType, Uuid } from '../api/records.js';
import type { BounceCounts, Joined } from '../api/reports.js';
import type { Audience } from '../engine/rules/outcomes.js';

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
	reportDetails(c: { from: Day; to: Day; campaign: Uuid | null; lists: boolean }): Promise<DetailFigures>;
	/** `null`: there is no such campaign. */
	linkFigures(c: { campaign: Uuid }): Promise<LinkFigures | null>;
}

export interface ReportFigures {
	/** Distinct messages by day of their first such event; days and types without events are left out. */
	daily: { day: Day; type: EventType; count: number }[];
	/** Distinct messages of the range that were sent or bounced: the total for the bounce rate. */
	attempted: number;
}

/** Distinct messages by their first event of each type; `human` leaves out events of machines. */
export interface TypedCount {
	type: EventType | 'COMPLAINED';
	audience: Audience;
	count: number;
}

export interface DetailFigures {
	time_zone: string;
	/** Messages that bounced, and those of them that were never sent. */
	bounced: number;
	neverSent: number;
	days: (TypedCount & { day: Day })[];
	/** `hour`: since 1970 by the clocks of the zone. The 72 hours from the first with a message sent. */
	hours: (TypedCount & { hour: number })[];
	/** `hour`: 0 begins on Monday at midnight. */
	week: (TypedCount & { hour: number })[];
	/** The 20 with the most bounces; `other_domains`: further ones. */
	domains: ({ domain: string } & BounceCounts)[];
	other_domains: number;
	codes: ({ code: string } & BounceCounts)[];
	/** The 10 largest first; null: not asked for. */
	lists: ListFigures[] | null;
}

/** A list in a range of days; days without a change are left out. */
export interface ListFigures {
	id: number;
	name: string;
	active: number;
	days: { day: Day; kind: keyof Joined; count: number }[];
}

export interface LinkFigures {
	/** The contents of the campaign with the most clicks first, at most 200: each with a submission that has it. */
	contents: { sha256: string; submission: Uuid }[];
	/** The most clicked links first, at most 10,000. `messages`: distinct ones with a click. */
	figures: { sha256: string; link: number; audience: Audience; clicks: number; messages: number }[];
}

export interface CampaignLife {
	days: { from: Day; to: Day } | null;
}
