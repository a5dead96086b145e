/** Campaigns, or the last days and those before them, side by side: rates and how they differ, in points. */

import { type Extensions, need } from '../../../api/capabilities.js';
import { percentOf } from '../../../api/counts.js';
import { addDays, dayOf, formatWireDate } from '../../../api/datetime.js';
import type { DetailsQuery, ReportDetails } from '../../../api/reports.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { parseDays } from '../../frame/values.js';
import { type Column, type Columns, column } from '../../render/columns.js';
import { numberText, shareText } from '../../render/units.js';
import { campaignArg, findCampaign } from '../campaigns/find.js';

/** One of those that are compared. */
interface Side {
	name: string;
	/** Null for days. */
	id: string | null;
	from: string;
	to: string;
	figures: ReportDetails['total'];
	rates: Rates;
}

/** In percent of `baseOf`; 0 of nothing. */
type Rates = Record<(typeof rateNames)[number], number>;
const rateNames = [
	...(['delivered', 'opened', 'clicked', 'clicked_of_opened', 'unsubscribed', 'complained'] as const),
	...(['softbounced', 'hardbounced'] as const),
] as const;

const output =
	'{"compared": [{"name", "id", "from", "to", "figures", "rates"}], "differences": [{"name", "figures", "rates"}]}: each after the first, less the first; rates are percentages, their differences points';

export const campaignsCompare = command({
	name: 'compare',
	summary: 'campaigns side by side, and how they differ from the first',
	args: [{ ...campaignArg, summary: 'names or UUIDs, two or more', many: true }],
	output,
	exits: [3],
	examples: [
		'mailctl campaigns compare november december',
		'mailctl campaigns compare november december -o json',
	],
	run: (cx, { args }) => compareCampaigns(cx, args.campaign),
});

export const reportCompare = command({
	name: 'compare',
	summary: 'the last days beside those before them',
	options: {
		last: {
			kind: 'text',
			placeholder: 'N',
			summary: 'so many days, and as many before: 14d, 4w (7d)',
		},
	},
	output,
	exits: [3],
	examples: ['mailctl report compare --last 7d'],
	run: async (cx, { options }) => {
		const days = parseDays(options.last ?? '7d', '--last');
		const reports = await need(await cx.api(), 'reports', 'mailctl report compare');
		const zone = (await reports.details({}, { signal: cx.signal })).time_zone;
		const today = dayOf(cx.clock.now(), zone);
		const range = (last: string) => ({
			date_from: formatWireDate(addDays(last, 1 - days)),
			date_to: formatWireDate(last),
		});
		await print(cx, [
			await sideOf(cx, reports, range(addDays(today, -days)), { name: `the ${days} days before`, id: null }),
			await sideOf(cx, reports, range(today), { name: `the last ${days} days`, id: null }),
		]);
	},
});

async function compareCampaigns(cx: CommandContext, names: readonly string[]): Promise<undefined> {
	if (names.length < 2) return compareCampaigns(cx, [...names, await otherThan(cx, names)]);
	const wanted = 'mailctl campaigns compare';
	const api = await cx.api();
	const reports = await need(api, 'reports', wanted);
	const campaigns = await need(api, 'campaigns', wanted);
	const sides: Side[] = [];
	for (const text of names) {
		const { id, key } = await findCampaign(cx, campaigns, text);
		sides.push(await sideOf(cx, reports, { campaign_unique_id: id }, { name: key, id }));
	}
	await print(cx, sides);
}

/** A second campaign, asked of a person. Throws `UsageError` in a script, and where there is no other. */
async function otherThan(cx: CommandContext, names: readonly string[]): Promise<string> {
	const tooFew = new UsageError('give two campaigns or more to compare', {
		hint: mailctl('campaigns', 'list'),
	});
	if (!cx.canAsk) throw tooFew;
	const { choicesOf } = await import('../../verbs/choices.js');
	const all = await choicesOf(cx, 'campaign', {});
	const others = async (typed: string) => (await all(typed)).filter(({ value }) => !names.includes(value));
	if ((await others('')).length === 0) throw tooFew;
	return cx.search('And which other:', others);
}

async function sideOf(
	cx: CommandContext,
	reports: Extensions['reports'],
	query: DetailsQuery,
	who: Pick<Side, 'name' | 'id'>,
): Promise<Side> {
	const { from, to, total } = await reports.details(query, { signal: cx.signal });
	const rateOf = (name: (typeof rateNames)[number]) => {
		const part = total[name === 'clicked_of_opened' ? 'clicked' : name];
		return [name, percentOf(part, total[baseOf[name]])];
	};
	// Made of all names.
	const rates = Object.fromEntries(rateNames.map(rateOf)) as Rates;
	return { ...who, from, to, figures: total, rates };
}

async function print(cx: CommandContext, sides: readonly Side[]): Promise<void> {
	const [first, ...others] = sides;
	if (first === undefined) return;
	if (cx.out.format === 'json') {
		const differences = others.map(({ name, figures, rates }) => ({
			name,
			figures: less(figures, first.figures),
			rates: less(rates, first.rates),
		}));
		return cx.out.document({ compared: sides, differences });
	}
	const isForPeople = ['table', 'wide', 'markdown'].includes(cx.out.format);
	await cx.out.rows(measures, columnsOf(sides, isForPeople), { all: true });
}

/** Each value less the other's, without the noise of floating point. */
function less<K extends string>(values: Record<K, number>, of: Record<K, number>): Record<K, number> {
	const names = Object.keys(values) as K[];
	// Made of the keys of both.
	return Object.fromEntries(names.map((name) => [name, roundedTo2(values[name] - of[name])])) as Record<
		K,
		number
	>;
}

function roundedTo2(value: number): number {
	return Math.round(value * 100) / 100;
}

interface Measure {
	key: string;
	label: string;
	value(side: Side): number;
	/** What it is a share of; null: it is a count. */
	base: ((side: Side) => number) | null;
}

const measures: readonly Measure[] = [
	{ key: 'sent', label: 'sent', value: ({ figures }) => figures.sent, base: null },
	...rateNames.map((key) => ({
		key,
		label:
			{ clicked_of_opened: 'clicked of opened', softbounced: 'soft bounces', hardbounced: 'hard bounces' }[
				key as string
			] ?? key,
		value: ({ rates }: Side) => rates[key],
		base: ({ figures }: Side) => figures[baseOf[key]],
	})),
];

const baseOf: Record<(typeof rateNames)[number], 'sent' | 'attempted' | 'opened'> = {
	delivered: 'attempted',
	opened: 'sent',
	clicked: 'sent',
	clicked_of_opened: 'opened',
	unsubscribed: 'sent',
	complained: 'sent',
	softbounced: 'attempted',
	hardbounced: 'attempted',
};

/** The measure, a column for each side, and one for each difference: numbers alone for programs. */
function columnsOf(sides: readonly Side[], isForPeople: boolean): Columns<Measure> {
	const [first] = sides;
	return [
		column('label', 'MEASURE', { isName: true }),
		...sides.flatMap((side, index): Column<Measure>[] => [
			{
				key: `side_${index + 1}`,
				header: side.name,
				align: 'right',
				value: ({ value, base }) => {
					if (!isForPeople) return value(side);
					if (base === null) return numberText(value(side));
					return base(side) === 0 ? ofNothing : shareText(value(side));
				},
			},
			...(first === undefined || index === 0
				? []
				: [
						{
							key: `difference_${index + 1}`,
							header: 'DIFFERENCE',
							align: 'right' as const,
							value: ({ value, base }: Measure) => {
								const difference = roundedTo2(value(side) - value(first));
								if (!isForPeople) return difference;
								const isOfNothing = base !== null && (base(side) === 0 || base(first) === 0);
								return isOfNothing ? ofNothing : differenceText(difference, base !== null);
							},
						},
					]),
		]),
	];
}

/** A rate without a base is none. */
const ofNothing = '-';

function differenceText(difference: number, isRate: boolean): string {
	const sign = difference > 0 ? '+' : difference < 0 ? '-' : '';
	const size = Math.abs(difference);
	return `${sign}${isRate ? `${size.toFixed(2)} points` : numberText(size)}`;
}
