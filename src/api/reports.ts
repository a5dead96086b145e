import type { Call } from './api.js';
import { CampaignFigures } from './campaigns.js';
import { addDays, type Day, daysBetween, parseWireDate } from './datetime.js';
import type { FieldErrors } from './errors.js';
import { isRecord } from './json.js';
import { type EventType, eventTypes, type Report, type ReportQuery, type Uuid } from './records.js';
import * as f from './schema/fields.js';
import { trimWhitespace } from './schema/python.js';
import * as t from './schema/record.js';
import { fieldSet, type Infer, type Parsed } from './schema.js';

/** Assumption: the service's default report covers 7 days and ends today. */
const defaultReportDays = 7;
/** Assumption: a report covers at most a leap year. */
const maxReportDays = 366;

export interface ReportsPlus {
	report(query: ReportQuery & { tag?: string; human?: boolean }, call?: Call): Promise<Report>;
	details(query: DetailsQuery, call?: Call): Promise<ReportDetails>;
	links(campaign: Uuid, call?: Call): Promise<CampaignLinks>;
}

export type DetailsQuery = Pick<ReportQuery, 'date_from' | 'date_to' | 'campaign_unique_id'> & {
	lists?: boolean;
};

const hour = t.described(t.text, { pattern: String.raw`^\d{4}-\d{2}-\d{2}T\d{2}:00$` });

const { created, ...others } = CampaignFigures.keys;
const figures = { ...others, created, complained: t.count };
export type Figures = t.RecordOf<typeof figures>;

const bounceCounts = { softbounced: t.needed(t.count), hardbounced: t.needed(t.count) };
export type BounceCounts = t.RecordOf<typeof bounceCounts>;

const joined = {
	added: t.needed(t.count),
	unsubscribed: t.needed(t.count),
	bounced: t.needed(t.count),
	left: t.needed(t.count),
};
export type Joined = t.RecordOf<typeof joined>;

/** Omits deleted subscribers, because the store keeps no data about them. */
const ListGrowth = t.record({
	...joined,
	id: t.needed(t.id),
	name: t.needed(t.text),
	active: t.needed(t.count),
	days: t.needed(t.listOf(t.record({ ...joined, date: t.needed(t.day) }))),
});
export type ListGrowth = Infer<typeof ListGrowth>;

export const ReportDetails = t.component('ReportDetails', {
	from: t.needed(t.day),
	to: t.needed(t.day),
	time_zone: t.needed(t.text),
	/** `attempted`: sent or bounced. `delivered`: attempted without a bounce. */
	total: t.needed(t.record({ ...figures, attempted: t.needed(t.count), delivered: t.needed(t.count) })),
	days: t.needed(t.listOf(t.record({ ...figures, date: t.needed(t.day) }))),
	hours: t.needed(t.listOf(t.record({ ...figures, date: t.needed(hour) }))),
	week: t.needed(t.listOf(t.record({ ...figures, weekday: t.needed(t.count), hour: t.needed(t.count) }))),
	bounces: t.needed(
		t.record({
			domains: t.needed(t.listOf(t.record({ ...bounceCounts, domain: t.needed(t.text) }))),
			other_domains: t.count,
			codes: t.needed(t.listOf(t.record({ ...bounceCounts, code: t.needed(t.text) }))),
		}),
	),
	lists: t.optional(t.needed(t.listOf(ListGrowth))),
});
export type ReportDetails = Infer<typeof ReportDetails>;

/** Clicks of bots and proxies count only in `machine_clicks` and `machine_people`. */
const CampaignLink = t.component('CampaignLink', {
	url: t.needed(t.orNull(t.text)),
	/** Starts at 1. A URL that occurs twice in the mail is two links. */
	position: t.needed(t.count),
	people: t.needed(t.count),
	clicks: t.needed(t.count),
	machine_people: t.needed(t.count),
	machine_clicks: t.needed(t.count),
	share: t.number,
});
export type CampaignLink = Infer<typeof CampaignLink>;

export const CampaignLinks = t.component('CampaignLinks', {
	results: t.needed(t.listOf(CampaignLink)),
	left_out: t.needed(t.count),
});
export type CampaignLinks = Infer<typeof CampaignLinks>;

export interface CheckedReport {
	from: Day;
	to: Day;
	hasDates: boolean;
	campaign: Uuid | null;
	types: readonly EventType[];
}

/** `today` is a day in the database's time zone. */
export function parseReportQuery(query: unknown, today: Day): Parsed<CheckedReport> {
	const parsed = declared.parse(isRecord(query) ? withoutBlanks(query) : query, 'create');
	const errors = parsed.kind === 'invalid' ? parsed.errors : {};
	const good = parsed.kind === 'invalid' ? parsed.good : parsed.value;
	const { date_from, date_to, campaign_unique_id, event_types = [] } = good ?? {};
	const to = date_to ?? today;
	const from = date_from ?? addDays(to, 1 - defaultReportDays);
	const areDaysRead = !('date_from' in errors || 'date_to' in errors);
	const all = { ...errors, ...(areDaysRead && checkRange(from, to)) };
	if (Object.keys(all).length > 0) return { kind: 'invalid', errors: all };
	return {
		kind: 'valid',
		value: {
			from,
			to,
			hasDates: date_from !== undefined || date_to !== undefined,
			campaign: campaign_unique_id ?? null,
			types: event_types.length === 0 ? eventTypes : [...new Set(event_types)],
		},
	};
}

const declared = fieldSet({
	date_from: f.optional(wireDate()),
	date_to: f.optional(wireDate()),
	campaign_unique_id: f.optional(f.uuid()),
	event_types: f.optional(choices(f.choice(eventTypes))),
});

function wireDate(): f.Field<Day, 'required'> {
	return f.field({}, (input) => {
		const day = typeof input === 'string' ? parseWireDate(trimWhitespace(input)) : null;
		if (day !== null) return f.valid(day);
		return f.refuse('invalid', 'Date has wrong format. Use one of these formats instead: DD.MM.YYYY.');
	});
}

// DRF's MultipleChoiceField reports only the first bad choice, without its index.
function choices<T>(inner: f.Field<T>): f.Field<T[], 'required'> {
	const all = f.list(inner);
	return f.field(all.schema, (input) => {
		const values: unknown = typeof input === 'string' ? [input] : input;
		const bad = Array.isArray(values)
			? values.map(inner.check).find(({ kind }) => kind === 'invalid')
			: undefined;
		return bad?.kind === 'invalid' ? bad : all.check(values);
	});
}

function withoutBlanks(query: Readonly<Record<string, unknown>>): Record<string, unknown> {
	return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== '' && value !== null));
}

function checkRange(from: Day, to: Day): FieldErrors {
	const days = daysBetween(from, to) + 1;
	if (days < 1) return { date_to: [{ code: 'invalid', message: 'The last day is before the first.' }] };
	if (days <= maxReportDays) return {};
	const message = `The report covers at most ${maxReportDays} days.`;
	return { date_to: [{ code: 'invalid', message }] };
}
