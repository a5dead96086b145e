/** Campaigns and their audiences over their routes. */
import type { Extensions } from '../../api/capabilities.js';
import { type Check, every, listOf, pageOf, record, within } from './decode.js';
import { encodeQuery } from './encode.js';
import type { OperationRequest } from './request.js';
import { pageQuery } from './resources.js';

/** Carries out one operation, and checks the answer. */
export type Perform = <T>(what: OperationRequest, check: Check) => Promise<T>;

const campaign = every(
	record({ id: 'text', key: 'text', state: 'text', position: 'count', is_finished: 'boolean' }),
	within('counts', record({ staged: 'count', suppressed: 'count', rejected: 'count' })),
);
const acceptCounts = record({ staged: 'count', suppressed: 'count', rejected: 'count' });
const rejects = within('rejects', listOf(record({ row: 'count', code: 'text', error: 'text' })));
/** The answer to a batch. */
export const ackOf = (counts: Check) =>
	every(record({ position: 'count' }), within('counts', counts), rejects);
const acceptAck = ackOf(acceptCounts);

/** Only for a deployment that announces them. */
export function campaigns(
	perform: Perform,
	performEmpty: (what: OperationRequest) => Promise<void>,
): Extensions['campaigns'] {
	return {
		open: (key, spec, call) => {
			const body = openingBody(key, spec, call);
			return perform(
				{ operation: 'ext.campaigns.open', body, call },
				every(record({ id: 'text', position: 'count' }), record({ key: 'text' })),
			);
		},
		check: (key, spec, call) =>
			performEmpty({ operation: 'ext.campaigns.check', body: openingBody(key, spec, call), call }),
		put: (uuid, { first, ...body }, call) =>
			perform({ operation: 'ext.campaigns.put', values: { uuid, first }, body, call }, acceptAck),
		putRequests: (uuid, { first, ...body }, call) =>
			perform({ operation: 'ext.campaigns.putRequests', values: { uuid, first }, body, call }, acceptAck),
		complete: (uuid, body, call) =>
			performEmpty({ operation: 'ext.campaigns.complete', values: { uuid }, body, call }),
		page: (request, call) =>
			perform({ operation: 'ext.campaigns.page', query: pageQuery(request), call }, pageOf(campaign)),
		results: (uuid, request, call) =>
			perform(
				{ operation: 'ext.campaigns.results', values: { uuid }, query: encodeQuery({ ...request }), call },
				every(within('results', listOf(record({ to: 'text', state: 'text' }))), record({ next: 'position' })),
			),
		addList: (uuid, list_id, call) => {
			const isInParts = call?.forMs !== undefined;
			return perform(
				{
					operation: 'ext.campaigns.addList',
					values: { uuid, list_id },
					query: encodeQuery(isInParts ? { for_ms: call.forMs } : {}),
					// A part that was staged and not answered is not staged again.
					...(isInParts && { isRepeatable: true }),
					call,
				},
				acceptAck,
			);
		},
		release: (uuid, body, call) =>
			performEmpty({ operation: 'ext.campaigns.release', values: { uuid }, body, call }),
		cancel: (uuid, call) => {
			const query = encodeQuery(call?.forget === true ? { forget: true } : {});
			return performEmpty({ operation: 'ext.campaigns.cancel', values: { uuid }, query, call });
		},
		status: (uuid, call) =>
			perform(
				{ operation: 'ext.campaigns.status', values: { uuid }, call },
				every(record({ id: 'text', state: 'text', messages: 'object' }), within('counts', acceptCounts)),
			),
	};
}

function openingBody(
	...[key, spec, call]: Parameters<Extensions['campaigns']['open']>
): Readonly<Record<string, unknown>> {
	const { unless } = call ?? {};
	return { ...spec, ...(unless !== undefined && { unless }), ...(key !== null && { key }) };
}

/** Only for a deployment that announces them. */
export function audiences(perform: Perform): Extensions['audiences'] {
	const reasons = within('reasons', listOf(record({ code: 'text', count: 'count' })));
	const part = every(within('counts', every(acceptCounts, reasons)), record({ next: 'position' }));
	const person = record({ to: 'text', list_id: 'position', code: 'text' });
	return {
		foresee: (body, { list_id, after = 0 }, call) =>
			perform(
				{
					operation: 'ext.audiences.foresee',
					values: { list_id },
					query: encodeQuery({ after }),
					body: { ...body },
					call,
				},
				part,
			),
		plan: (body, call) =>
			perform({ operation: 'ext.audiences.plan', body: { ...body }, call }, record({ time_zone: 'text' })),
		leftOut: (uuid, request, call) =>
			perform(
				{ operation: 'ext.audiences.leftOut', values: { uuid }, query: encodeQuery({ ...request }), call },
				every(within('results', listOf(person)), record({ next: 'position' })),
			),
	};
}
