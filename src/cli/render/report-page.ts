import { createHash } from 'node:crypto';
import { escapeHtml } from '../../api/quote.js';
import { clean } from './clean.js';
import { chartOf, colours, growthChart, hoursChart, narrow, weekChart } from './report-charts.js';
import { factsOf, numberColumns, outcomesOf, type ReportTable, recipientsTitle } from './report-model.js';
import { moreTables, rangeText, type SavedReport, totalLines } from './saved-report.js';
import { numberText } from './units.js';

const style = `${colours}
*{box-sizing:border-box}
body{margin:0 auto;max-width:52rem;padding:1.5rem 1rem 3rem;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:2.25rem 0 .5rem;overflow-wrap:anywhere}
p{margin:0;color:var(--soft)}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(8.5rem,1fr));gap:.75rem;margin:1.5rem 0 0}
dl div{border:1px solid var(--line);border-radius:.5rem;padding:.6rem .75rem}
dt{color:var(--soft);font-size:.85rem}
dd{margin:0;font-variant-numeric:tabular-nums}
dd b{font-size:1.35rem;font-weight:600}
dd span{display:block;color:var(--soft);font-size:.85rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.35rem .75rem .35rem 0;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--soft);font-weight:500;font-size:.85rem}
td{overflow-wrap:anywhere}
td:first-child{min-width:10rem}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
svg{display:block;width:100%;height:auto}
@media print{body{max-width:none;padding:0}h2{break-after:avoid}figure,tr,dl div{break-inside:avoid}}
figure{margin:0}
.sum div:first-child{border-width:2px}
figure svg+svg{display:none}
@media(max-width:34rem){figure svg{display:none}figure svg+svg{display:block}
th,td{padding-right:.4rem;font-size:.8rem}th{font-size:.75rem}th.n{white-space:normal}td:first-child{min-width:3rem}}`;

export function pageOf(saved: SavedReport): string {
	const title = safe(saved.title);
	const hash = createHash('sha256').update(style).digest('base64');
	return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-${hash}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${title}</h1>
<p>${safe(rangeText(saved))}</p>
${[...campaign(saved), totals(saved), ...pictures(saved), ...moreTables(saved).map(table), dayTable(saved)].join('\n')}
</main>
</body>
</html>
`;
}

function campaign({ head, detailed }: SavedReport): string[] {
	if (head === null) return [];
	const facts = factsOf(head).map(([label, text]) => `<p>${safe(label)} <b>${safe(text)}</b></p>`);
	const title = recipientsTitle(detailed?.isOfDays === true);
	const counted: [string, number][] = [[title, head.recipients.total], ...outcomesOf(head)];
	const boxes = counted.map(([label, count]) => box(label, numberText(count), []));
	return [...facts, `<dl class="sum">${boxes.join('\n')}</dl>`];
}

function totals(saved: SavedReport): string {
	const boxes = totalLines(saved).map(({ name, count, share, base, machines }) => {
		const part = share === null ? '' : `${share}${base === null ? '' : ` of ${base}`}`;
		if (count === null) return box(name, part, []);
		return box(name, numberText(count), [part, machines === null ? '' : `bots ${numberText(machines)}`]);
	});
	return `<dl>${boxes.join('\n')}</dl>`;
}

function box(label: string, figure: string, notes: readonly string[]): string {
	const spans = notes.filter((note) => note !== '').map((note) => `<span>${safe(note)}</span>`);
	return `<div><dt>${safe(label)}</dt><dd><b>${safe(figure)}</b>${spans.join('')}</dd></div>`;
}

function pictures(saved: SavedReport): string[] {
	const { chart, detailed } = saved;
	if (chart === 'none') return [];
	const drawn = chartOf(saved);
	const found = [picture(drawn.title, drawn.label, drawn.svg + chartOf(saved, narrow).svg)];
	if (detailed === null) return found;
	const { hours, week, lists = [] } = detailed.details;
	if (hours.length > 1) {
		const svg = hoursChart(hours) + hoursChart(hours, narrow);
		found.push(picture('The first hours', 'opens and clicks by hour', svg));
	}
	if (chart !== 'heat' && week.some(({ opened }) => opened > 0)) {
		const svg = weekChart(week) + weekChart(week, narrow);
		found.push(picture('Opens by weekday and hour', 'opens by weekday and hour', svg));
	}
	for (const list of lists.filter((one) => one.added + one.unsubscribed + one.bounced + one.left > 0)) {
		const label = `subscribers who joined or left ${list.name}, by day`;
		found.push(picture(`Growth of ${list.name}`, label, growthChart(list) + growthChart(list, narrow)));
	}
	return found;
}

function dayTable({ days }: SavedReport): string {
	return table({
		title: 'Days',
		header: ['Day', 'Sent', 'Opened', 'Clicked', 'Bounced'],
		rows: days.map(({ date, sent, opened, clicked, softbounced, hardbounced = 0 }) => [
			...[date, sent, opened, clicked ?? ''],
			softbounced === undefined ? '' : softbounced + hardbounced,
		]),
	});
}

/** `svg` may contain a second drawing for narrow screens. */
function picture(title: string, label: string, svg: string): string {
	const shown = svg.replaceAll('<svg ', `<svg role="img" aria-label="${safe(label)}" `);
	return `<h2>${safe(title)}</h2>\n<figure>${shown}</figure>`;
}

function table(shown: ReportTable): string {
	const { title, header, rows } = shown;
	const isNumber = numberColumns(shown);
	const cells = (row: readonly (string | number)[], tag: string) =>
		row.map((cell, at) => {
			const text = typeof cell === 'number' ? numberText(cell) : cell;
			return `<${tag}${isNumber[at] ? ' class="n"' : ''}>${safe(text)}</${tag.slice(0, 2)}>`;
		});
	const body = rows.map((row) => `<tr>${cells(row, 'td').join('')}</tr>`);
	return `<h2>${safe(title)}</h2>
<div class="wide" role="region" aria-label="${safe(title)}" tabindex="0"><table><thead><tr>${cells(header, 'th scope="col"').join('')}</tr></thead><tbody>
${body.join('\n')}
</tbody></table></div>`;
}

function safe(text: string): string {
	return escapeHtml(clean(text));
}
