import { emailKey } from '../api/address.js';
import { createTurns } from '../api/backoff.js';
import { ApiError, type FieldErrors, invalid, listFieldErrors } from '../api/errors.js';
import { texts } from '../api/schema/texts.js';
import {
	type NewSuppression,
	rejectErrors,
	removalFields,
	type Suppression,
	type SuppressionAck,
	type SuppressionFilter,
	type SuppressionRow,
	type Suppressions,
	suppressionFields,
	suppressionReasons,
	suppressionRowFields,
	suppressionSources,
	toNewSuppression,
} from '../api/suppressions.js';
import { checked, type EngineContext, found, readPage, refuse } from './context.js';

const maxSlice = 1000;
const maxRows = 5000;

export function createSuppressions(context: EngineContext): Suppressions {
	const { store, clock } = context;
	const { reads, writes } = store;
	return {
		page: async (request) =>
			readPage(context, request, '/ext/suppressions/', async (at, given) => {
				const found = await reads.pageSuppressions({ ...at, filter: usable(given), now: clock.now() });
				const last = found.results.at(-1);
				return last === undefined ? found : { ...found, cursor: cursorOf(last) };
			}),
		slice: async ({ cursor, limit: wanted, ...given }) => {
			if (!Number.isSafeInteger(wanted) || wanted < 1) refuse('limit', texts.integer);
			const limit = Math.min(wanted, maxSlice);
			const after = cursor === undefined ? null : readCursor(cursor);
			const results = await reads.sliceSuppressions({
				after,
				limit,
				filter: usable(given),
				now: clock.now(),
			});
			const last = results.length < limit ? undefined : results.at(-1);
			return { results, next: last === undefined ? null : cursorOf(last) };
		},
		create: async (body) => {
			const row = { ...checked(suppressionFields.parse(body, 'create')), source: 'API' as const };
			const now = clock.now();
			const wanted = toNewSuppression(row);
			const { rejects } = await writes.putSuppressions({ rows: [wanted], now });
			const [refused] = rejects;
			if (refused !== undefined) throw invalid(rejectErrors(refused));
			const { email_key, reason, list_id } = wanted;
			return found(await reads.findSuppression({ email_key, reason, list_id, now }));
		},
		put: (rows) => each(rows, (good) => writes.putSuppressions({ rows: good, now: clock.now() })),
		check: (rows) => each(rows, (good) => reads.compareSuppressions({ rows: good, now: clock.now() })),
		remove: async (which) => {
			const { email, reason = null, list_id = null } = checked(removalFields.parse(which, 'create'));
			const email_key = emailKey(email);
			return found(await writes.removeSuppressions({ email_key, reason, list_id, now: clock.now() }));
		},
	};
}

function cursorOf({ reason, list_id, email }: Suppression): string {
	return `${reason}:${list_id ?? ''}:${email}`;
}

async function each(
	rows: readonly SuppressionRow[],
	work: (good: readonly NewSuppression[]) => Promise<SuppressionAck>,
): Promise<SuppressionAck> {
	if (!Array.isArray(rows)) refuse('rows', 'Expected a list of items.');
	if (rows.length > maxRows)
		throw new ApiError('too_large', `A call holds at most ${maxRows.toLocaleString('en-US')} rows.`);
	const parsed = [];
	const turn = createTurns();
	for (const row of rows) {
		await turn();
		parsed.push(suppressionRowFields.parse(row, 'create'));
	}
	const good = parsed.flatMap((one, row) =>
		one.kind === 'valid' ? [{ row, value: toNewSuppression(one.value) }] : [],
	);
	const bad = parsed.flatMap((one, row) => (one.kind === 'invalid' ? [{ row, ...firstOf(one.errors) }] : []));
	const ack = await work(good.map(({ value }) => value));
	const refused = ack.rejects.map((one) => ({ ...one, row: good[one.row]?.row ?? one.row }));
	return {
		counts: { ...ack.counts, rejected: ack.counts.rejected + bad.length },
		rejects: [...bad, ...refused].sort((a, b) => a.row - b.row),
	};
}

function firstOf(errors: FieldErrors): { code: string; error: string } {
	const [first] = listFieldErrors(errors);
	return { code: first?.code ?? 'invalid', error: `${first?.path ?? ''}: ${first?.message ?? ''}` };
}

function usable(filter: SuppressionFilter): SuppressionFilter {
	const { reason, source, list_id } = filter;
	if (list_id !== undefined && !Number.isSafeInteger(list_id)) refuse('list_id', texts.integer);
	if (reason !== undefined && !suppressionReasons.includes(reason)) notOneOf('reason', reason);
	if (source !== undefined && !suppressionSources.includes(source)) notOneOf('source', source);
	return filter;
}

function notOneOf(name: string, value: string): never {
	return refuse(
		name,
		`Select a valid choice. ${value} is not one of the available choices.`,
		'invalid_choice',
	);
}

function readCursor(cursor: string): { email_key: string; reason: string; list_id: number | null } {
	const [, reason, list, email_key] = /^([A-Z]+):(\d{0,15}):([^\0]+)$/.exec(cursor) ?? [];
	if (reason === undefined || email_key === undefined) return refuse('cursor', 'This is not a valid cursor.');
	return { email_key, reason, list_id: list === '' ? null : Number(list) };
}
