/** The page on one person, in lines. Pure. */
import type { LeftOut, ListedSubscriber, PersonMessage } from '../../../api/people.js';
import type { Suppression } from '../../../api/suppressions.js';
import type { Times } from '../../render/times.js';
import { detailLines } from '../messages/shown.js';
import type { Held } from './held.js';

/** The lines of the page; text of strangers is not cleaned. `days`: the age of the oldest messages; null: all. */
export function pageOf(
	{ subscribers, told }: Held,
	answer: readonly string[],
	{ days, times }: { days: number | null; times: Times },
): string[] {
	const blocks: [title: string, lines: readonly string[]][] = [
		[
			'Lists',
			subscribers.map((one) => subscriberLine(one, { suppressions: told?.suppressions ?? [], times })),
		],
	];
	if (told !== null) {
		const { suppressions, recent, messages, left_out, copies, date_sender } = told;
		const names = new Map(subscribers.map(({ list_id, list_name }) => [list_id, list_name]));
		const titled =
			days === null ? 'Messages, the newest first' : `Messages of the last ${days} days, the newest first`;
		const older = messages - recent.length;
		blocks.push(
			['Suppressions', suppressions.map((one) => suppressionLine(one, { names, times }))],
			[
				titled,
				[
					...recent.flatMap((one) => messageLines(one, times)),
					...(older > 0 ? [`${older} older: --all`] : []),
				],
			],
			['Left out of campaigns', left_out.map((one) => leftOutLine(one, times))],
		);
		if (copies.length > 0) blocks.push(['Messages with the address as a copy or for replies', copies]);
		if (date_sender !== null) blocks.push(['Verified sender', [`since ${times.text(date_sender)}`]]);
	}
	const lines = [
		...answer,
		...blocks.flatMap(([title, lines]) => [
			'',
			title,
			...(lines.length === 0 ? ['  none'] : lines.map((line) => `  ${line}`)),
		]),
	];
	const caption = times.caption();
	return caption === null ? lines : [...lines, '', caption];
}

/** An inactive one with the date of the suppression behind it, where there is one. */
function subscriberLine(
	one: ListedSubscriber,
	{ suppressions, times }: { suppressions: readonly Suppression[]; times: Times },
): string {
	const { list_name, list_id, id, is_active, disable_reason, source, date_created } = one;
	const since = suppressions.find(
		(other) => other.reason === disable_reason && (other.list_id === null || other.list_id === list_id),
	);
	const why =
		disable_reason === null ? '' : ` (${disable_reason}${since ? ` ${times.text(since.date_created)}` : ''})`;
	const state = is_active ? 'active' : `inactive${why}`;
	return `${list_name} (list ${list_id}, subscriber ${id}): ${state}, ${source} ${times.text(date_created)}`;
}

function suppressionLine(
	{ reason, list_id, source, date_created, expires_at }: Suppression,
	{ names, times }: { names: ReadonlyMap<number, string>; times: Times },
): string {
	const of = list_id === null ? 'all lists' : `list ${names.get(list_id) ?? list_id}`;
	const until = expires_at === null ? '' : `, until ${times.text(expires_at)}`;
	return `${reason} of ${of}, by ${source}, ${times.text(date_created)}${until}`;
}

function leftOutLine({ key, campaign, date_created, code, error }: LeftOut, times: Times): string {
	return `${times.text(date_created)} ${key} (${campaign}): ${error === null ? code : `${code}, ${error}`}`;
}

function messageLines(message: PersonMessage, times: Times): string[] {
	const { id, subject, state, date_created } = message;
	return [
		`${times.text(date_created)} ${state} "${subject}" ${id}`,
		...detailLines(message, times).map((line) => `  ${line}`),
	];
}
