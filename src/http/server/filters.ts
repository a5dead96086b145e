/** Queries of collections, as the requests of the Api: which rows, in which order, from where on. */
import { type CampaignFilter, campaignStates, type ResultsRequest } from '../../api/campaigns.js';
import type { MessageFilter, MessageScope } from '../../api/capabilities.js';
import type { DeliveryFilter } from '../../api/deliveries.js';
import { invalid } from '../../api/errors.js';
import { type ExportRequest, type TupleKeys, tupleKeyNames } from '../../api/exports.js';
import { notAChoice, texts } from '../../api/schema/texts.js';
import type { SuppressionFilter } from '../../api/suppressions.js';
import type { Query } from './match.js';

/** A thousand subscribers from the first on, if nothing else is asked for. */
export function exportRequest(query: Query): ExportRequest {
	const [after, limit] = [query.integer('after') ?? 0, query.integer('limit') ?? 1000];
	return { ...subscriberFilter(query), after, limit };
}

/** A word that is none is refused: another order of the values would not be seen. */
export function keysOf(query: Query): TupleKeys {
	const word = query.text('keys') ?? 'imported';
	const found = tupleKeyNames.find((name) => name === word);
	if (found !== undefined) return found;
	throw invalid({ keys: [{ code: 'invalid_choice', message: notAChoice(word) }] });
}

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

/** A state of no such name filters nothing, as django-filter has it (api-decisions 9). */
export function campaignFilter(query: Query): CampaignFilter {
	const [key, id] = [query.text('key'), query.filter('id')];
	const state = campaignStates.find((one) => one === query.filter('state'));
	return {
		...givenFilters(query, ['since']),
		...(key !== undefined && { key }),
		...(id !== undefined && { id: id.toLowerCase() }),
		...(state !== undefined && { state }),
		...orderingOf(query),
	};
}

/** An order of no such name orders nothing, as django-filter has it (api-decisions 9). */
function orderingOf(query: Query): { ordering?: '-date_created' } {
	return query.filter('ordering') === '-date_created' ? { ordering: '-date_created' } : {};
}

/** The engine checks the words. */
export function messageFilter(query: Query): MessageFilter {
	const given = givenFilters(query, ['status', 'to', 'campaign_unique_id', 'tag', 'since']);
	return { ...given, ...orderingOf(query) };
}

function givenFilters(query: Query, names: readonly string[]): Record<string, string> {
	const values = names.map((name) => [name, query.filter(name)] as const);
	return Object.fromEntries(values.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/** The engine checks the numbers. */
export function resultsRequest(query: Query): ResultsRequest {
	const after = query.integer('after');
	const limit = query.integer('limit');
	return {
		...(after !== undefined && Number.isSafeInteger(after) && { after }),
		...(limit !== undefined && Number.isSafeInteger(limit) && { limit }),
		...(query.text('only') === 'findings' && { only: 'findings' as const }),
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

/** The engine checks the words. */
export function deliveryFilter(query: Query): DeliveryFilter {
	const given = { ...givenFilters(query, ['state', 'since']), ...orderingOf(query) };
	return given as DeliveryFilter;
}

/** The engine checks the words. */
export function suppressionFilter(query: Query): SuppressionFilter {
	const given = givenFilters(query, ['email__icontains', 'email__exact', 'reason', 'source']);
	const list_id = query.integer('list_id');
	return { ...given, ...(list_id !== undefined && { list_id }) } as SuppressionFilter;
}
