/** What is said beside a report that has nothing to show: where the last events are, and what its rows cannot tell. */
import { addDays, type Day, dayOf, daysBetween, parseWireDate } from '../../../api/datetime.js';
import { type EventType, hasDays, type Report } from '../../../api/records.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { isMachine } from '../../frame/globals.js';

/** What is counted. */
interface Counted {
	campaign: string | undefined;
	event: readonly EventType[];
	tag: string | undefined;
	human: boolean;
	watch: number | undefined;
}

interface Asked {
	result: Report;
	/** The report from that day to today. */
	ask(from: Day): Promise<Report>;
}

/** Where the days that were asked for have no events; on stderr, so also beside a pipe. */
export async function hintLastEvents(cx: CommandContext, counted: Counted, asked: Asked): Promise<void> {
	const { format } = cx.out;
	const isForPeople = !isMachine(format) && cx.globals.fields === undefined;
	const isEmpty = Object.values(asked.result.total).every((figure) => Number(figure) === 0);
	if (!isForPeople || counted.watch !== undefined || !isEmpty || !hasDays(counted.event)) return;
	const { ext } = await (await cx.api()).capabilities();
	const look = ext.campaigns === undefined ? [] : [': ', mailctl('campaigns', 'list')];
	// A service may refuse so many days: the report that was asked for stands without a hint.
	const from = addDays(dayOf(cx.clock.now(), 'UTC'), 2 - mostDays);
	const hint = await asked.ask(from).then(
		(year) => hintOf(counted, year, look),
		() => null,
	);
	if (hint !== null) await cx.hint(hint);
}

/** A row a day has two figures, whatever is counted. */
export async function warnOfDays(cx: CommandContext, events: readonly EventType[]): Promise<void> {
	if (hasDays(events)) return;
	await cx.warn(
		`the days of a report have figures of SENT and OPENED alone, which --event ${events.join(',')} leaves out`,
		'-o table and -o json have the totals',
	);
}

/** The longest report of a deployment (api-decisions 35), whose today is a day from that of UTC at most. */
const mostDays = 366;

/** The ranges that are named: the first that reaches the last day with events. */
const ranges = [7, 14, 30, 90, 180, mostDays];

/** From the report of a year that ends today. `look`: where mail is that has no events yet. */
function hintOf(counted: Counted, { data }: Report, look: readonly Hint[]): Hint {
	const last = lastOf(data);
	const filled = lastOf(data.filter(({ sent, opened }) => sent > 0 || opened > 0));
	const none = 'no events in these days';
	if (last === undefined || filled === undefined) return [`${none}, nor in the last year`, ...look];
	const days = daysBetween(filled, last) + 1;
	const range = ranges.find((one) => one >= days) ?? mostDays;
	return [
		`${none}; the last ones are of ${filled}: `,
		mailctl('report', '--last', `${range}d`, ...wordsOf(counted)),
	];
}

function lastOf(rows: Report['data']): Day | undefined {
	return rows
		.flatMap(({ date }) => parseWireDate(date) ?? [])
		.sort()
		.at(-1);
}

function wordsOf({ campaign, tag, human, event }: Counted): readonly string[] {
	return [
		...(campaign === undefined ? [] : ['--campaign', campaign]),
		...event.flatMap((one) => ['--event', one]),
		...(tag === undefined ? [] : ['--tag', tag]),
		...(human ? ['--human'] : []),
	];
}
