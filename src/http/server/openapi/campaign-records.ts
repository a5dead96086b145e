/** Answers about campaigns as JSON Schemas: the records of `api/campaigns.ts` and `api/audiences.ts`. */
import { messageStates } from '../../../api/records.js';
import type { JsonSchema } from '../../../api/schema/field.js';
import {
	count,
	flag,
	id,
	listOf,
	moment,
	momentOrNull,
	record,
	ref,
	states,
	text,
	textOrNull,
	uuid,
} from './shapes.js';

const acceptedCounts = { staged: count, suppressed: count, rejected: count, left_out: count };
const leavingOut = { code: text, detail: textOrNull };

export const acceptCounts = record(acceptedCounts, ['left_out']);

/** Name → schema. */
export const campaignSchemas: Readonly<Record<string, JsonSchema>> = {
	CampaignStatus: record(
		{
			id: uuid,
			key: text,
			state: { type: 'string', enum: ['staged', 'released', 'canceled'] },
			is_finished: { type: 'boolean' },
			messages: states,
			joined: states,
			replies: listOf(record({ state: text, reply: text, count })),
			counts: ref('AcceptCounts'),
			plan: ref('CampaignPlan'),
			lists: listOf(ref('ListCounts')),
			attachments: listOf(ref('AttachedFile')),
		},
		['joined', 'replies', 'plan', 'lists', 'attachments'],
	),
	Campaign: record(
		{
			id: uuid,
			key: text,
			state: { type: 'string', enum: ['staged', 'released', 'canceled'] },
			is_finished: { type: 'boolean' },
			counts: ref('AcceptCounts'),
			position: count,
			is_complete: { type: 'boolean' },
			type: { type: 'string', enum: ['TRANSACTIONAL', 'BULK'] },
			subject: textOrNull,
			from: text,
			list_id: { type: ['integer', 'null'] },
			source: { type: ['object', 'null'], additionalProperties: text },
			requests: { type: 'boolean' },
			date_created: moment,
			date_released: momentOrNull,
			date_dropped: moment,
			figures: { anyOf: [ref('CampaignFigures'), { type: 'null' }] },
			plan: ref('CampaignPlan'),
			audience: ref('Audience'),
			rate: text,
		},
		['from', 'plan', 'audience', 'date_dropped', 'rate'],
	),
	Audience: record({
		lists: listOf(id),
		exclude_lists: listOf(id),
		where: listOf(text),
		where_opened: listOf(uuid),
		where_not_opened: listOf(uuid),
	}),
	CampaignPlan: record({
		starts_at: momentOrNull,
		window: textOrNull,
		time_zone: text,
		opens_at: momentOrNull,
		is_planned: flag,
	}),
	PlannedTiming: record(
		{
			starts_at: moment,
			window: text,
			time_zone: text,
			opens_at: momentOrNull,
			note: { type: ['string', 'null'], enum: ['skipped', 'repeated', null] },
		},
		['starts_at', 'window'],
	),
	ListCounts: record(
		{
			list_id: id,
			...acceptedCounts,
			reasons: listOf(record({ ...leavingOut, count })),
		},
		['left_out'],
	),
	AudiencePart: record({
		counts: ref('ListCounts'),
		first: { type: ['integer', 'null'] },
		findings: listOf(text),
		next: { type: ['integer', 'null'] },
	}),
	LeftOutPeople: record({
		results: listOf(record({ to: text, list_id: { type: ['integer', 'null'] }, ...leavingOut })),
		next: { type: ['integer', 'null'] },
	}),
	CampaignFigures: record({
		created: count,
		sent: count,
		opened: count,
		machine_opened: count,
		clicked: count,
		machine_clicked: count,
		unsubscribed: count,
		softbounced: count,
		hardbounced: count,
	}),
	CampaignResult: record({
		line: { type: ['integer', 'null'] },
		to: text,
		id: { anyOf: [uuid, { type: 'null' }] },
		state: { type: 'string', enum: [...messageStates, 'suppressed', 'rejected'] },
		code: textOrNull,
		text: textOrNull,
		attempts: count,
	}),
	CampaignResults: record({
		results: { type: 'array', items: ref('CampaignResult') },
		next: { type: ['integer', 'null'] },
	}),
};
