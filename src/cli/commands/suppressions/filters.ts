import {
	addDays,
	dayOf,
	formatDateTime,
	type Micros,
	microsPerDay,
	microsPerSecond,
	momentOf,
	parseDateTime,
	parseWireDate,
} from '../../../api/datetime.js';
import { type Suppression, suppressionReasons, suppressionSources } from '../../../api/suppressions.js';
import type { OptionValues } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { given } from '../../frame/values.js';
import { type Columns, column } from '../../render/columns.js';
import { resolveList } from '../../verbs/resolve.js';

export const suppressionColumns: Columns<Suppression> = [
	column('email', 'ADDRESS', { isKept: 'address', isName: true }),
	column('reason', 'REASON'),
	column('list_id', 'LIST', { align: 'right' }),
	column('source', 'SOURCE', { isOptional: true }),
	column('expires_at', 'EXPIRES', {
		isOptional: true,
		// Omit midnight, because a table has little space.
		lines: ({ expires_at }, times) =>
			expires_at === null ? [] : [times.text(expires_at).replace(/ 00:00$/, '')],
		time: 'text',
	}),
	column('date_created', 'SINCE', { time: 'day' }),
];

export const listOption = { kind: 'text', placeholder: 'LIST' } as const;

export const filterOptions = {
	match: { kind: 'text', summary: 'filter by a part of the address', placeholder: 'TEXT' },
	email: { kind: 'text', summary: 'filter by address' },
	reason: { kind: 'choice', choices: suppressionReasons, summary: 'filter by reason' },
	source: { kind: 'choice', choices: suppressionSources, summary: 'filter by source' },
	list: { ...listOption, summary: 'show suppressions of this list (id or name), not those of all lists' },
} as const;

export const expiresOption = {
	kind: 'text',
	placeholder: 'DATE|DUR',
	summary: 'end the suppression after a time (30d, 12h) or when a day begins (tomorrow)',
} as const;

type Filters = OptionValues<typeof filterOptions>;

export async function filterOf(cx: CommandContext, { match, email, reason, source, list }: Filters) {
	const filter = { email__icontains: match, email__exact: email, reason, source };
	return { ...given(filter), ...(await listOf(cx, list)) };
}

export async function listOf(cx: CommandContext, text: string | undefined): Promise<{ list_id?: number }> {
	if (text === undefined) return {};
	return { list_id: (await resolveList(await cx.api(), text, { signal: cx.signal })).id };
}

const unitMicros = { d: microsPerDay, h: 3_600 * microsPerSecond, m: 60 * microsPerSecond } as const;

/** `7d` means 7 days from now here, but 7 days ago in other options. */
export function parseExpires(cx: CommandContext, text: string): string {
	const now = cx.clock.now();
	const at = endOf(text.trim().toLowerCase(), { now, zone: cx.timeZone() });
	if (at === null) throw new UsageError(`--expires: "${text}" is not a date or duration`, { hint: forms });
	if (at > now) return formatDateTime(at);
	throw new UsageError(`--expires: "${text}" is in the past`, {
		hint: `${forms}; to suppress permanently, omit --expires`,
	});
}

const forms = 'valid: 30d, 12h, tomorrow, 2030-01-31, 31.01.2030, 2030-01-31T18:00:00';

/** A time without `Z` is in `zone`. */
function endOf(text: string, around: { now: Micros; zone: string }): Micros | null {
	const { now, zone } = around;
	const [, count, unit] = /^(\d{1,5})([dhm])$/.exec(text) ?? [];
	if (count !== undefined) return now + Number(count) * unitMicros[unit === 'h' || unit === 'm' ? unit : 'd'];
	const written = parseDateTime(text.toUpperCase());
	if (written !== null && text.endsWith('z')) return written;
	const at = written ?? parseDateTime(`${dayNamed(text, around)}T00:00:00`);
	return at === null ? null : momentOf(formatDateTime(at).slice(0, 19), zone).at;
}

function dayNamed(text: string, { now, zone }: { now: Micros; zone: string }): string {
	const days = ['yesterday', 'today', 'tomorrow'].indexOf(text);
	if (days !== -1) return addDays(dayOf(now, zone), days - 1);
	return parseWireDate(text) ?? text;
}
