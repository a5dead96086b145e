/** Where a report without events points a person to: the last days that have some. */
import { addDays, type Day, daysBetween, parseWireDate } from '../../../api/datetime.js';
import type { Report } from '../../../api/records.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { isMachine } from '../../frame/globals.js';

/** What is counted. */
interface Counted {
	campaign: string | undefined;
	event: readonly string[];
	tag: string | undefined;
	human: boolean;
	watch: number | undefined;
}

interface Asked {
	result: Report;
	/** The report from that day to today. */
	ask(from: Day): Promise<Report>;
	today(): Promise<Day>;
}

/** Where the days that were asked for have no events; on stderr, so also beside a pipe. */
export async function hintLastEvents(cx: CommandContext, counted: Counted, asked: Asked): Promise<void> {
	const { format } = cx.out;
	const isForPeople = !isMachine(format) && cx.globals.fields === undefined;
	const isEmpty = Object.values(asked.result.total).every((figure) => Number(figure) === 0);
	if (!isForPeople || counted.watch !== undefined || !isEmpty) return;
	const { ext } = await (await cx.api()).capabilities();
	const look = ext.campaigns === undefined ? [] : [': ', mailctl('campaigns', 'list')];
	// A service may refuse so many days: the report that was asked for stands without a hint.
	const hint = await hintOf(counted, asked, look).catch(() => null);
	if (hint !== null) await cx.hint(hint);
}

/** The longest report of a deployment (api-decisions 35). */
const mostDays = 366;

/** The ranges that are named: the first that reaches the last day with events. */
const ranges = [7, 14, 30, 90, 180, mostDays];

/** One question, for the last year. `look`: where mail is that has no events yet. */
async function hintOf(counted: Counted, { ask, today }: Asked, look: readonly Hint[]): Promise<Hint> {
	const last = await today();
	const { data } = await ask(addDays(last, 1 - mostDays));
	const filled = data
		.filter(({ sent, opened }) => sent > 0 || opened > 0)
		.flatMap(({ date }) => parseWireDate(date) ?? [])
		.sort()
		.at(-1);
	const none = 'no events in these days';
	if (filled === undefined) return [`${none}, nor in the last year`, ...look];
	const days = daysBetween(filled, last) + 1;
	const range = ranges.find((one) => one >= days) ?? mostDays;
	return [
		`${none}; the last ones are of ${filled}: `,
		mailctl('report', '--last', `${range}d`, ...wordsOf(counted)),
	];
}

function wordsOf({ campaign, tag, human, event }: Counted): readonly string[] {
	return [
		...(campaign === undefined ? [] : ['--campaign', campaign]),
		...event.flatMap((one) => ['--event', one]),
		...(tag === undefined ? [] : ['--tag', tag]),
		...(human ? ['--human'] : []),
	];
}
