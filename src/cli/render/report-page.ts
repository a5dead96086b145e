import { createHash } from 'node:crypto';
import { escapeHtml } from '../../api/quote.js';
import type { ListGrowth } from '../../api/reports.js';
import { clean } from './clean.js';
import { factsOf, meaningOf, outcomesOf } from './report-details.js';
import { chartOf, colours, growthPicture, hoursPicture, narrow, weekPicture } from './report-pictures.js';
import {
	growthHeader,
	growthRow,
	growthTitle,
	rangeText,
	recipientsTitle,
	repliesHeader,
	repliesTitle,
	replyRow,
	type SavedReport,
	totalsOf,
} from './saved-report.js';
import { numberText, shareOf, shareText } from './units.js';

const style = `${colours}
*{box-sizing:border-box}
body{margin:0 auto;max-width:52rem;padding:1.5rem 1rem 3rem;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:2.25rem 0 .5rem}
h3{font-size:1rem;margin:1.25rem 0 .25rem;overflow-wrap:anywhere}
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
.wide+p{margin-top:.5rem}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
svg{display:block;width:100%;height:auto}
@media print{body{max-width:none;padding:0}h2,h3{break-after:avoid}figure,tr,dl div{break-inside:avoid}}
figure{margin:0}
.sum div:first-child{border-width:2px}
figure svg+svg{display:none}
@media(max-width:34rem){figure svg{display:none}figure svg+svg{display:block}
th,td{padding-right:.4rem;font-size:.8rem}th{font-size:.75rem}th.n{white-space:normal}td:first-child{min-width:3rem}}`;

export function pageOf(saved: SavedReport): string {
	const { detailed, lists } = saved;
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
${campaign(saved)}
${totals(saved)}
${chart(saved)}
${detailed === null ? '' : detailSections(saved, detailed)}
${
	lists.length === 0
		? ''
		: table(
				'Lists',
				['List', 'Active', 'Inactive'],
				lists.map((list) => [list.name, list.active_subscribers_count, list.inactive_subscribers_count]),
			)
}
${growth(saved, detailed?.details.lists ?? [])}
${dayTable(saved)}
</main>
</body>
</html>
`;
}

function campaign(saved: SavedReport): string {
	const { head } = saved;
	if (head === null) return '';
	const facts = factsOf(head).map(([label, text]) => `<p>${safe(label)} <b>${safe(text)}</b></p>`);
	const title = recipientsTitle(saved);
	const counted: [string, number][] = [[title, head.recipients.total], ...outcomesOf(head)];
	const boxes = counted.map(
		([label, count]) => `<div><dt>${safe(label)}</dt><dd><b>${numberText(count)}</b></dd></div>`,
	);
	return `${facts.join('\n')}\n<dl class="sum">${boxes.join('\n')}</dl>`;
}

function chart(saved: SavedReport): string {
	const drawn = chartOf(saved);
	const small = chartOf(saved, narrow);
	return drawn && small ? picture(drawn.title, drawn.label, drawn.svg + small.svg) : '';
}

function totals(saved: SavedReport): string {
	const boxes = totalsOf(saved).map(({ name, count, percent, base, machines }) => {
		const share = percent === null ? null : shareOf(percent) + (base === null ? '' : ` of ${base}`);
		const more = [count === null ? null : share, machines === null ? null : `machines ${machines}`];
		const notes = more.filter((one) => one !== null).map((one) => `<span>${safe(one)}</span>`);
		return `<div><dt>${safe(name)}</dt><dd><b>${safe(count ?? share ?? '')}</b>${notes.join('')}</dd></div>`;
	});
	return `<dl>${boxes.join('\n')}</dl>`;
}

function detailSections(
	{ chart }: SavedReport,
	{ details, links, replies, isOfDays }: NonNullable<SavedReport['detailed']>,
): string {
	const { hours, week, bounces } = details;
	const showsWeek = chart !== 'heat' && chart !== 'none' && week.some(({ opened }) => opened > 0);
	return [
		links.length === 0
			? ''
			: table(
					isOfDays ? 'Links, over the whole life of the campaign' : 'Links',
					['Link', 'People', 'Clicks', 'Share', 'Machines'],
					links
						.slice(0, 50)
						.map(({ url, position, people, clicks, share, machine_people }) => [
							url ?? `link ${position} of a content that is not kept`,
							people,
							clicks,
							shareText(share),
							machine_people,
						]),
				),
		hours.length < 2 || chart === 'none'
			? ''
			: picture(
					'The first hours',
					'opens and clicks by hour',
					hoursPicture(hours) + hoursPicture(hours, narrow),
				),
		showsWeek
			? picture(
					'Opens in the week',
					'opens by weekday and hour',
					weekPicture(week) + weekPicture(week, narrow),
				)
			: '',
		bounces.domains.length === 0
			? ''
			: table(
					'Bounces by domain',
					['Domain', 'Hard', 'Soft'],
					bounces.domains.map(({ domain, hardbounced, softbounced }) => [domain, hardbounced, softbounced]),
				),
		bounces.codes.length === 0
			? ''
			: table(
					'Bounces by reason',
					['Reason', 'Code', 'Hard', 'Soft'],
					bounces.codes.map(({ code, hardbounced, softbounced }) => [
						meaningOf(code),
						code === '' ? '-' : code,
						hardbounced,
						softbounced,
					]),
				),
		replies.length === 0 ? '' : table(repliesTitle, repliesHeader, replies.map(replyRow)),
	].join('\n');
}

function growth({ chart }: SavedReport, lists: readonly ListGrowth[]): string {
	if (lists.length === 0) return '';
	const changed = lists.filter((list) => list.added + list.unsubscribed + list.bounced + list.left > 0);
	const drawn = chart === 'none' ? [] : changed;
	return [
		table(growthTitle, growthHeader, lists.map(growthRow)),
		'<p>Subscribers of today by the day they came, and by the day they unsubscribed, bounced, complained or were stopped. Deleted ones are not among them.</p>',
		...drawn.map((list) => {
			const label = `subscribers of ${list.name} who came and who left, by day`;
			return picture(list.name, label, growthPicture(list) + growthPicture(list, narrow), 'h3');
		}),
	].join('\n');
}

function dayTable({ days }: SavedReport): string {
	return table(
		'Days',
		['Day', 'Sent', 'Opened', 'Clicked', 'Bounced'],
		days.map(({ date, sent, opened, clicked, softbounced, hardbounced }) => [
			date,
			sent,
			opened,
			clicked ?? '',
			softbounced === undefined ? '' : softbounced + (hardbounced ?? 0),
		]),
	);
}

/** `svg`: twice, the second for a narrow screen. */
function picture(title: string, label: string, svg: string, heading: 'h2' | 'h3' = 'h2'): string {
	const shown = svg.replaceAll('<svg ', `<svg role="img" aria-label="${safe(label)}" `);
	return `<${heading}>${safe(title)}</${heading}>\n<figure>${shown}</figure>`;
}

/** Numbers, and columns below a header of numbers, are aligned to the right. */
function table(
	title: string,
	header: readonly string[],
	rows: readonly (readonly (string | number)[])[],
): string {
	const isNumber = header.map((_, at) => at > 0 && rows.some((row) => typeof row[at] === 'number'));
	const mark = (at: number, cell: string | number) =>
		isNumber[at] === true || header[at] === 'Share' || /^[\d.]+ %$/.test(String(cell)) ? ' class="n"' : '';
	const head = header.map((name, at) => `<th scope="col"${mark(at, '')}>${safe(name)}</th>`).join('');
	const body = rows.map(
		(row) =>
			`<tr>${row.map((cell, at) => `<td${mark(at, cell)}>${safe(typeof cell === 'number' ? numberText(cell) : cell)}</td>`).join('')}</tr>`,
	);
	return `<h2>${safe(title)}</h2>
<div class="wide" role="region" aria-label="${safe(title)}" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>
${body.join('\n')}
</tbody></table></div>`;
}

function safe(text: string): string {
	return escapeHtml(clean(text));
}
