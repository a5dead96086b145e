/** Queries of collections, as the requests of the Api: which rows, in which order, from where on. */
import { type CampaignFilter, campaignStates, type ResultsRequest } from '../../api/campaigns.js';
import type { MessageFilter, MessageScope } from '../../api/capabilities.js';
import { type DeliveryFilter, deliveryStates } from '../../api/deliveries.js';
import { invalid } from '../../api/errors.js';
import { type ExportRequest, type TupleKeys, tupleKeyNames } from '../../api/exports.js';
import { messageStates } from '../../api/records.js';
import { notAChoice, texts } from '../../api/schema/texts.js';
import { type SuppressionFilter, suppressionReasons, suppressionSources } from '../../api/suppressions.js';
import type { Query } from './match.js';

/** A thousand subscribers from the first on, if nothing else is asked for. */
export function exportRequest(query: Query): ExportRequest {
	const [after, limit] = [query.integer('after') ?? 0, query.integer('limit') ?? 1000];
	return { ...subscriberFilter(query), after, limit };
}

export function keysOf(query: Query): TupleKeys {
	return choicesOf(query, { keys: tupleKeyNames }).keys ?? 'imported';
}

/** Filters of ours that take one word of a set. Any other is refused, a blank one too: it would answer all rows. */
function choicesOf<Sets extends Readonly<Record<string, readonly string[]>>>(
	query: Query,
	sets: Sets,
): { [Name in keyof Sets]?: Sets[Name][number] } {
	const given = Object.keys(sets).flatMap((name) =>
		query.text(name) === undefined ? [] : [[name, query.filter(name) ?? ''] as const],
	);
	const wrong = given.filter(([name, word]) => !sets[name]?.includes(word));
	if (wrong.length > 0)
		throw invalid(
			Object.fromEntries(
				wrong.map(([name, word]) => [name, [{ code: 'invalid_choice', message: notAChoice(word) }]]),
			),
		);
	// Checked above.
	return Object.fromEntries(given) as { [Name in keyof Sets]?: Sets[Name][number] };
}

const ordering = ['date_created', '-date_created'] as const;

/** What is blank or no truth value filters nothing (api-decisions 9). */
export function subscriberFilter(query: Query) {
	const contains = query.filter('email__icontains');
	const exact = query.filter('email__exact');
	const is_active = query.boolean('is_active');
	return {
		...(contains !== undefined && { email__icontains: contains }),
		...(exact !== undefined && { email__exact: exact }),
		...(is_active !== undefined && { is_active }),
	};
}

export function campaignFilter(query: Query): CampaignFilter {
	const [key, id] = [query.exact('key'), query.filter('id')];
	return {
		...givenFilters(query, ['since']),
		...(key !== undefined && { key }),
		...(id !== undefined && { id: id.toLowerCase() }),
		...choicesOf(query, { state: campaignStates, ordering }),
	};
}

/** The engine checks the other words. */
export function messageFilter(query: Query): MessageFilter {
	const given = givenFilters(query, ['to', 'campaign_unique_id', 'tag', 'since']);
	return { ...given, ...choicesOf(query, { status: messageStates, ordering }) };
}

function givenFilters(query: Query, names: readonly string[]): Record<string, string> {
	const values = names.map((name) => [name, query.filter(name)] as const);
	return Object.fromEntries(values.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/** Leaves out values that are not whole numbers. */
export function resultsRequest(query: Query): ResultsRequest {
	const after = query.integer('after');
	const limit = query.integer('limit');
	return {
		...(after !== undefined && Number.isSafeInteger(after) && { after }),
		...(limit !== undefined && Number.isSafeInteger(limit) && { limit }),
		...choicesOf(query, { only: ['findings'] as const }),
	};
}

/** Of one submission, or of one campaign. Throws `invalid` where neither is named. */
export function scopeOf(query: Query): MessageScope {
	const submission = query.filter('submission');
	const campaign = query.filter('campaign');
	if (submission !== undefined) return { submission };
	if (campaign !== undefined) return { campaign };
	throw invalid({ submission: [{ code: 'required', message: texts.required }] });
}

export function deliveryFilter(query: Query): DeliveryFilter {
	return { ...givenFilters(query, ['since']), ...choicesOf(query, { state: deliveryStates, ordering }) };
}

export function suppressionFilter(query: Query): SuppressionFilter {
	const list_id = query.filter('list_id') === undefined ? undefined : query.integer('list_id');
	return {
		...givenFilters(query, ['email__icontains', 'email__exact']),
		...choicesOf(query, { reason: suppressionReasons, source: suppressionSources }),
		...(list_id !== undefined && { list_id }),
	};
}
