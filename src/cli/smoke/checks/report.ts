/** The events report. Service document, "Events report"; a default window of 7 or 8 days (api-decisions 35). */

import { addDays, daysBetween, formatWireDate, parseWireDate } from '../../../api/datetime.js';
import { isRecord } from '../../../api/json.js';
import { expectObject, expectRecord, expectRecords, expectRefusal } from '../assertions.js';
import { paths } from '../check-context.js';
import { Broken, type Check, type Probe } from '../model.js';
import { withQuery } from '../pages.js';
import { count, fault, type Json, number, type Rule, type Shape, shown, string } from '../shapes.js';

const percentText: Rule = (value) =>
	string(value) ??
	(/^\d{1,3}(\.\d+)?$/.test(String(value)) ? null : fault(`is ${shown(value)}, which holds no number`));

const totalShape: Shape = {
	sent: count,
	opened: count,
	opened_percent: percentText,
	redirected_percent: number,
	softbounced_percent: number,
	unsubscribed_percent: number,
	hardbounced_percent: number,
};

const wireDate: Rule = (value) =>
	string(value) ?? (parseWireDate(String(value)) === null ? fault(`is ${shown(value)}, not %d.%m.%Y`) : null);
const dayShape: Shape = { date: wireDate, opened: count, sent: count };

/** All change nothing. Sent messages are unknown here: days must be the requested ones, totals the sum of the days. */
export function reportChecks(): Check[] {
	const check = (verb: string, title: string, run: (probe: Probe) => Promise<string | undefined>): Check => ({
		id: `report.${verb}`,
		group: 'report',
		title,
		need: 'read',
		run,
	});
	return [
		check('shape', 'totals and days of the last week', async (probe) => {
			const { total, days } = await readReport(probe, {});
			if (days.length !== 7 && days.length !== 8)
				probe.deviate(`without dates it has ${days.length} days, not 7`);
			else if (days.length === 8) probe.deviate('without dates it has 8 days: a week ago to today');
			judgeDays(probe, days);
			judgeSums(probe, total, days);
			return `${days.length} days, ${shown(total['sent'])} sent`;
		}),
		check('dates', 'date_from and date_to choose the days', (probe) => checkDates(probe)),
		check('events', 'event_types may be repeated', async (probe) => {
			const path = `${paths.report}?event_types=SENT&event_types=OPENED`;
			await readReport(probe, {}, path);
			return undefined;
		}),
		check('refusals', 'a date that is none is refused', async (probe) => {
			const path = withQuery(paths.report, { date_from: '2026-11-01' });
			const answer = await probe.call({ method: 'GET', path });
			if (answer.status === 200) probe.deviate('a date in another format is ignored, not refused');
			else expectRefusal(probe, answer, { what: 'a date in another format', statuses: [400] });
			return undefined;
		}),
	];
}

interface ReadReport {
	total: Json;
	days: readonly Json[];
}

async function readReport(
	probe: Probe,
	query: Readonly<Record<string, string>>,
	path = withQuery(paths.report, query).replace(/\?$/, ''),
): Promise<ReadReport> {
	const body = await expectObject(probe, { method: 'GET', path }, 200);
	const { results } = body;
	if (!isRecord(results)) throw new Broken(`results is ${shown(results)}, not an object`);
	const { total, data } = results;
	if (!isRecord(total)) throw new Broken(`results.total is ${shown(total)}, not an object`);
	if (!Array.isArray(data)) throw new Broken(`results.data is ${shown(data)}, not an array`);
	expectRecord(probe, totalShape, total, 'total');
	expectRecords(probe, dayShape, data, 'day');
	return { total, days: data.filter(isRecord) };
}

/** Three days before the last one of a report without dates: past or present in every time zone. */
async function checkDates(probe: Probe): Promise<string> {
	const last = parseWireDate(String((await readReport(probe, {})).days.at(-1)?.['date']));
	if (last === null) throw new Broken('the report without dates has no last day to count from');
	const from = addDays(last, -2);
	const query = { date_from: formatWireDate(from), date_to: formatWireDate(last) };
	const { total, days } = await readReport(probe, query);
	for (const { date } of days) {
		const day = parseWireDate(String(date));
		if (day !== null && (day < from || day > last))
			probe.fault(`${shown(date)} is outside of the days asked for`);
	}
	if (days.length !== 3) probe.deviate(`three days asked for, ${days.length} came`);
	judgeDays(probe, days);
	judgeSums(probe, total, days);
	return `${query.date_from} to ${query.date_to}`;
}

function judgeDays(probe: Probe, days: readonly Json[]): void {
	const read = days.map(({ date }) => parseWireDate(String(date)) ?? '');
	const steps = read.slice(1).map((day, at) => (day === '' ? 1 : daysBetween(read[at] ?? '', day)));
	if (steps.some((step) => step === 0)) probe.fault('a day is there twice');
	else if (steps.some((step) => step < 0)) probe.deviate('the days are not ascending');
	else if (steps.some((step) => step > 1)) probe.deviate('days without events are left out');
}

/** Figures may change between two reads, not within one answer. */
function judgeSums(probe: Probe, total: Json, days: readonly Json[]): void {
	for (const key of ['sent', 'opened']) {
		const sum = days.reduce((before, day) => before + Number(day[key]), 0);
		if (sum !== Number(total[key]))
			probe.deviate(`${key} of the days add up to ${sum}, the total says ${shown(total[key])}`);
	}
}
