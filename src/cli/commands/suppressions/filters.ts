/** What the commands on suppressions share: columns, options, and what `--expires` means. */
import { formatDateTime, microsPerDay, microsPerSecond, parseDateTime } from '../../../api/datetime.js';
import {
	type Suppression,
	type SuppressionFilter,
	type SuppressionReason,
	type SuppressionSource,
	suppressionReasons,
	suppressionSources,
} from '../../../api/suppressions.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { type Columns, column } from '../../render/columns.js';
import { parseDate } from '../../values.js';

export const suppressionColumns: Columns<Suppression> = [
	column('email', 'ADDRESS', { isName: true }),
	column('reason', 'REASON'),
	column('source', 'SOURCE'),
	column('date_created', 'SINCE', { wide: true }),
	column('expires_at', 'EXPIRES'),
];

/** Which suppressions a list or an export is of. */
export const filterOptions = {
	match: { kind: 'text', summary: 'only addresses that contain this', placeholder: 'TEXT' },
	email: { kind: 'text', summary: 'only this address' },
	reason: { kind: 'choice', choices: suppressionReasons, summary: 'only those for this reason' },
	source: { kind: 'choice', choices: suppressionSources, summary: 'only those made by this' },
} as const;

export const expiresOption = {
	kind: 'text',
	placeholder: 'DATE|DUR',
	summary: 'it ends with that day’s beginning (UTC), or after 30d, 12h',
} as const;

export function filterOf(options: {
	match: string | undefined;
	email: string | undefined;
	reason: SuppressionReason | undefined;
	source: SuppressionSource | undefined;
}): SuppressionFilter {
	const { match, email, reason, source } = options;
	return {
		...(match !== undefined && { email__icontains: match }),
		...(email !== undefined && { email__exact: email }),
		...(reason !== undefined && { reason }),
		...(source !== undefined && { source }),
	};
}

const unitMicros = { d: microsPerDay, h: 3_600 * microsPerSecond, m: 60 * microsPerSecond } as const;

/** As the wire says it. Other dates of the command line look back (`7d`); an end can only lie ahead. */
export function parseExpires(cx: CommandContext, text: string): string {
	const [, count, unit] = /^(\d{1,5})([dhm])$/.exec(text.trim()) ?? [];
	const now = cx.clock.now();
	const at =
		count === undefined
			? momentOf(cx, text)
			: now + Number(count) * unitMicros[unit === 'h' || unit === 'm' ? unit : 'd'];
	if (at > now) return formatDateTime(at);
	throw new UsageError(`--expires: "${text}" is past`, { hint: 'for good: leave --expires out' });
}

function momentOf(cx: CommandContext, text: string): number {
	const whole = parseDateTime(text.trim());
	return whole ?? parseDateTime(`${parseDate(text, '--expires', cx.clock)}T00:00:00`) ?? 0;
}
