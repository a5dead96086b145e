import { type Extensions, need } from '../../../api/capabilities.js';
import { percentOf } from '../../../api/counts.js';
import { addDays, dayOf, formatWireDate } from '../../../api/datetime.js';
import type { DetailsQuery } from '../../../api/reports.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { parseDays } from '../../frame/values.js';
import type { Column, Columns } from '../../render/columns.js';
import { numberText, shareText } from '../../render/units.js';
import { campaignArg, findCampaign } from '../campaigns/record.js';

type Side = Awaited<ReturnType<typeof sideOf>>;

const baseOf = {
	delivered: 'attempted',
	opened: 'sent',
	clicked: 'sent',
	clicked_of_opened: 'opened',
	unsubscribed: 'sent',
	complained: 'sent',
	softbounced: 'attempted',
	hardbounced: 'attempted',
} as const;
type RateName = keyof typeof baseOf;
const rateNames = Object.keys(baseOf) as RateName[];

const output =
	'{"compared": [{"name", "id", "from", "to", "figures", "rates"}], "differences": [{"name", "figures", "rates"}]}: each difference is a later item of "compared" minus the first item; rates are in percent, their differences in percentage points';

export const campaignsCompare = command({
	name: 'compare',
	summary: 'compare campaigns with the first one',
	args: [{ ...campaignArg, summary: 'names or UUIDs, two or more', many: true }],
	output,
	exits: [3],
	examples: [
		'mailctl campaigns compare november december',
		'mailctl campaigns compare november december -o json',
	],
	run: async (cx, { args }) => {
		if (args.campaign.length < 2)
			throw new UsageError('give two or more campaigns to compare', { hint: mailctl('campaigns', 'list') });
		const api = await cx.api();
		const reports = await need(api, 'reports', 'mailctl campaigns compare');
		const campaigns = await need(api, 'campaigns', 'mailctl campaigns compare');
		const sides: Side[] = [];
		for (const text of args.campaign) {
			const { id, key } = await findCampaign(cx, campaigns, text);
			sides.push(await sideOf(cx, reports, { campaign_unique_id: id }, { name: key, id }));
		}
		await print(cx, sides);
	},
});

export const reportCompare = command({
	name: 'compare',
	summary: 'compare the last N days with the N days before',
	options: {
		last: { kind: 'text', placeholder: 'N', summary: 'compare this many days: 14d, 4w (default 7d)' },
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

type Reports = Extensions['reports'];
type Who = { name: string; id: string | null };

async function sideOf(cx: CommandContext, reports: Reports, query: DetailsQuery, who: Who) {
	const { from, to, total } = await reports.details(query, { signal: cx.signal });
	const rates = rateNames.map((name) => {
		const part = total[name === 'clicked_of_opened' ? 'clicked' : name];
		return [name, percentOf(part, total[baseOf[name]])];
	});
	return { ...who, from, to, figures: total, rates: Object.fromEntries(rates) as Record<RateName, number> };
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
	await cx.out.rows(['sent' as const, ...rateNames], columnsOf(first, others, isForPeople), { all: true });
}

function less<K extends string>(values: Record<K, number>, base: Record<K, number>): Record<string, number> {
	const names = Object.keys(values) as K[];
	return Object.fromEntries(names.map((name) => [name, rounded(values[name] - base[name])]));
}

function rounded(value: number): number {
	return Math.round(value * 100) / 100;
}

type Measure = 'sent' | RateName;

const labels: Partial<Record<Measure, string>> = {
	clicked_of_opened: 'clicked of opened',
	softbounced: 'soft bounces',
	hardbounced: 'hard bounces',
};

function columnsOf(first: Side, others: readonly Side[], isForPeople: boolean): Columns<Measure> {
	const measured = ({ figures, rates }: Side, measure: Measure) =>
		measure === 'sent' ? figures.sent : rates[measure];
	const column = (
		[key, header]: readonly [string, string],
		sides: readonly Side[],
		measureOf: (measure: Measure) => number,
		text: (value: number, isCount: boolean) => string,
	): Column<Measure> => ({
		...{ key, header, align: 'right' },
		value: (measure) => {
			const value = measureOf(measure);
			if (!isForPeople) return value;
			if (measure === 'sent') return text(value, true);
			return sides.every(({ figures }) => figures[baseOf[measure]] !== 0) ? text(value, false) : '-';
		},
	});
	const columnsFor = (side: Side, at: number) => [
		column(
			[`side_${at}`, side.name],
			[side],
			(measure) => measured(side, measure),
			(value, isCount) => (isCount ? numberText(value) : shareText(value)),
		),
		column(
			[`difference_${at}`, 'DIFFERENCE'],
			[first, side],
			(measure) => rounded(measured(side, measure) - measured(first, measure)),
			(value, isCount) => {
				const sign = value > 0 ? '+' : value < 0 ? '-' : '';
				const size = Math.abs(value);
				return `${sign}${isCount ? numberText(size) : `${size.toFixed(2)} points`}`;
			},
		),
	];
	return [
		{ key: 'label', header: 'MEASURE', isName: true, value: (measure) => labels[measure] ?? measure },
		...columnsFor(first, 1).slice(0, 1),
		...others.flatMap((side, at) => columnsFor(side, at + 2)),
	];
}
