/** The answers of reports as JSON Schemas: the records of `api/reports.ts`. */
import { count, listOf, record, ref, text, textOrNull } from './shapes.js';

const percent = { type: 'number' };
const day = { type: 'string', pattern: String.raw`^\d{2}\.\d{2}\.\d{4}$` };

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
	CampaignFigures: record({
		sent: count,
		opened: count,
		machine_opened: count,
		clicked: count,
		machine_clicked: count,
		unsubscribed: count,
		softbounced: count,
		hardbounced: count,
	}),
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
