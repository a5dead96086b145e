/** The events report, the document's and ours. */
import type { Call } from '../../api/api.js';
import type { Report, ReportQuery } from '../../api/records.js';
import { decode, every, listOf, record, within } from './decode.js';
import { encodeQuery } from './encode.js';
import type { Line } from './line.js';
import { send } from './send.js';

const check = within(
	'results',
	every(
		record({ total: 'object', data: 'array' }),
		within('total', record({ sent: 'number', opened: 'number' })),
		within('data', listOf(record({ date: 'text', opened: 'number', sent: 'number' }))),
	),
);

/** The days and totals of `results`. Values of the query go out as they are. */
export async function report(
	line: Line,
	operation: 'report' | 'ext.reports.report',
	{ query, call }: { query: ReportQuery & { tag?: string; human?: boolean }; call: Call | undefined },
): Promise<Report> {
	const success = await send(line, { operation, query: encodeQuery({ ...query }), call });
	return decode<{ results: Report }>(success, check).results;
}
