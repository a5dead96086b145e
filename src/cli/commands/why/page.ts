/** The page on one person, in lines. Pure. */
import type { LeftOut, ListedSubscriber, PersonMessage } from '../../../api/people.js';
import type { Suppression } from '../../../api/suppressions.js';
import { tableCell } from '../../render/cells.js';
import { detailLines } from '../messages/shown.js';
import type { Held } from './held.js';

/** The lines of the page; text of strangers is not cleaned. `days`: the age of the oldest messages; null: all. */
export function pageOf(
	{ subscribers, told }: Held,
	answer: readonly string[],
	days: number | null,
): string[] {
	const blocks: [title: string, lines: readonly string[]][] = [
		['Lists', subscribers.map((one) => subscriberLine(one, told?.suppressions ?? []))],
	];
	if (told !== null) {
		const { suppressions, recent, messages, left_out, copies, date_sender } = told;
		const names = new Map(subscribers.map(({ list_id, list_name }) => [list_id, list_name]));
		const titled =
			days === null ? 'Messages, the newest first' : `Messages of the last ${days} days, the newest first`;
		const older = messages - recent.length;
		blocks.push(
			['Suppressions', suppressions.map((one) => suppressionLine(one, names))],
			[titled, [...recent.flatMap(messageLines), ...(older > 0 ? [`${older} older: --all`] : [])]],
			['Left out of campaigns', left_out.map(leftOutLine)],
		);
		if (copies.length > 0) blocks.push(['Messages with the address as a copy or for replies', copies]);
		if (date_sender !== null) blocks.push(['Verified sender', [`since ${tableCell(date_sender)}`]]);
	}
	return [
		...answer,
		...blocks.flatMap(([title, lines]) => [
			'',
			title,
			...(lines.length === 0 ? ['  none'] : lines.map((line) => `  ${line}`)),
		]),
	];
}

/** An inactive one with the date of the suppression behind it, where there is one. */
function subscriberLine(one: ListedSubscriber, suppressions: readonly Suppression[]): string {
	const { list_name, list_id, id, is_active, disable_reason, source, date_created } = one;
	const since = suppressions.find(
		(other) => other.reason === disable_reason && (other.list_id === null || other.list_id === list_id),
	);
	const why =
		disable_reason === null ? '' : ` (${disable_reason}${since ? ` ${tableCell(since.date_created)}` : ''})`;
	const state = is_active ? 'active' : `inactive${why}`;
	return `${list_name} (list ${list_id}, subscriber ${id}): ${state}, ${source} ${tableCell(date_created)}`;
}

function suppressionLine(
	{ reason, list_id, source, date_created, expires_at }: Suppression,
	names: ReadonlyMap<number, string>,
): string {
	const of = list_id === null ? 'all lists' : `list ${names.get(list_id) ?? list_id}`;
	const until = expires_at === null ? '' : `, until ${tableCell(expires_at)}`;
	return `${reason} of ${of}, by ${source}, ${tableCell(date_created)}${until}`;
}

function leftOutLine({ key, campaign, date_created, code, error }: LeftOut): string {
	return `${tableCell(date_created)} ${key} (${campaign}): ${error === null ? code : `${code}, ${error}`}`;
}

function messageLines(message: PersonMessage): string[] {
	const { id, subject, state, date_created } = message;
	return [
		`${tableCell(date_created)} ${state} "${subject}" ${id}`,
		...detailLines(message).map((line) => `  ${line}`),
	];
}
