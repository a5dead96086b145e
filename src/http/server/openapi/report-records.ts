/** The answers of reports as JSON Schemas: the records of `api/reports.ts`. */
import { count, id, listOf, record, ref, text, textOrNull } from './shapes.js';

const percent = { type: 'number' };
const day = { type: 'string', pattern: String.raw`^\d{2}\.\d{2}\.\d{4}$` };

const figures = {
	sent: count,
	opened: count,
	machine_opened: count,
	clicked: count,
	machine_clicked: count,
	unsubscribed: count,
	softbounced: count,
	hardbounced: count,
};
const allFigures = { ...figures, created: count, complained: count };
const bounces = { softbounced: count, hardbounced: count };
const joined = { added: count, unsubscribed: count, bounced: count, left: count };
const isoDay = { type: 'string', format: 'date' };
const hour = { type: 'string', pattern: String.raw`^\d{4}-\d{2}-\d{2}T\d{2}:00$` };

export const reportSchemas = {
	Report: record({
		results: record({
			total: record({
				sent: count,
				opened: count,
				opened_percent: text,
				redirected_percent: percent,
				softbounced_percent: percent,
				unsubscribed_percent: percent,
				hardbounced_percent: percent,
			}),
			data: listOf(record({ date: day, opened: count, sent: count })),
		}),
	}),
	ReportDetails: record(
		{
			from: isoDay,
			to: isoDay,
			time_zone: text,
			total: record({ ...allFigures, attempted: count, delivered: count }),
			days: listOf(record({ ...allFigures, date: isoDay })),
			hours: listOf(record({ ...allFigures, date: hour })),
			week: listOf(record({ ...allFigures, weekday: count, hour: count })),
			bounces: record({
				domains: listOf(record({ ...bounces, domain: text })),
				other_domains: count,
				codes: listOf(record({ ...bounces, code: text })),
			}),
			lists: listOf(
				record({
					...joined,
					id,
					name: text,
					active: count,
					days: listOf(record({ ...joined, date: isoDay })),
				}),
			),
		},
		['lists'],
	),
	CampaignFigures: record(figures),
	CampaignLink: record({
		url: textOrNull,
		position: count,
		people: count,
		clicks: count,
		machine_people: count,
		machine_clicks: count,
		share: percent,
	}),
	CampaignLinks: record({ results: listOf(ref('CampaignLink')), left_out: count }),
};
