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
	campaignLife(c: { campaign: Uuid }): Promise<CampaignLife | null>;
	reportDetails(c: { from: Day; to: Day; campaign: Uuid | null; lists: boolean }): Promise<DetailFigures>;
	linkFigures(c: { campaign: Uuid }): Promise<LinkFigures | null>;
}

export interface ReportFigures {
	/** Distinct messages by day of their first such event; days and types without events are left out. */
	daily: { day: Day; type: EventType; count: number }[];
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
	bounced: number;
	neverSent: number;
	days: (TypedCount & { day: Day })[];
	/** `hour`: since 1970 by the clocks of the zone. At most 72, from the first with a message sent. */
	hours: (TypedCount & { hour: number })[];
	week: (TypedCount & { hour: number })[];
	domains: ({ domain: string } & BounceCounts)[];
	other_domains: number;
	codes: ({ code: string } & BounceCounts)[];
	lists: ListFigures[] | null;
}

export interface ListFigures {
	id: number;
	name: string;
	active: number;
	days: { day: Day; kind: keyof Joined; count: number }[];
}

export interface LinkFigures {
	contents: { sha256: string; submission: Uuid }[];
	figures: { sha256: string; link: number; audience: Audience; clicks: number; messages: number }[];
}

export interface CampaignLife {
	days: { from: Day; to: Day } | null;
}
