import type { LeftOut, ListedSubscriber, PersonMessage } from '../../../api/people.js';
import type { Suppression } from '../../../api/suppressions.js';
import type { Times } from '../../render/times.js';
import { deletedText, detailLines } from '../messages.js';
import type { Held } from './answer.js';

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
		blocks.push(
			['Suppressions', suppressions.map((one) => suppressionLine(one, { names, times }))],
			[
				titled,
				[
					...recent.flatMap((one, at) =>
						days === null || isTold(one, at) ? messageLines(one, times) : [messageLine(one, times)],
					),
					...moreLines(recent, { days, older: messages - recent.length }),
					...(told.deleted === undefined ? [] : [deletedText(told.deleted, times)]),
				],
			],
			['Left out of campaigns', left_out.map((one) => leftOutLine(one, times))],
		);
		if (copies.length > 0) blocks.push(['Messages with the address as a copy or for replies', copies]);
		if (date_sender !== null) blocks.push(['Verified sender', [`since ${times.text(date_sender)}`]]);
	}
	const filled = blocks.filter(([, lines]) => lines.length > 0);
	const empty = blocks.filter(([, lines]) => lines.length === 0);
	const lines = [
		...answer,
		...filled.flatMap(([title, lines]) => ['', title, ...lines.map((line) => `  ${line}`)]),
		...(empty.length === 0 ? [] : ['', ...empty.map(([title]) => `${title}: none`)]),
	];
	const caption = times.caption();
	return caption === null ? lines : [...lines, '', caption];
}

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
	return `${list_name} (list ${list_id}, subscriber ${id}): ${state}, added ${times.text(date_created)} by ${sourceText(source)}`;
}

export function sourceText(source: string): string {
	return sources[source] ?? source;
}

const sources: Readonly<Record<string, string>> = {
	RECIPIENT: 'the recipient',
	DELIVERY: 'a delivery',
	BOUNCE: 'a bounce report',
	COMPLAINT: 'a complaint',
	API: 'a call or a command',
	IMPORT: 'an import',
	FORM: 'a form',
	APP: 'an application',
};

function suppressionLine(
	{ reason, list_id, source, date_created, expires_at }: Suppression,
	{ names, times }: { names: ReadonlyMap<number, string>; times: Times },
): string {
	const of = list_id === null ? 'all lists' : `list ${names.get(list_id) ?? list_id}`;
	const until = expires_at === null ? '' : `, until ${times.text(expires_at)}`;
	return `${reason} of ${of}, set ${times.text(date_created)} by ${sourceText(source)}${until}`;
}

function leftOutLine({ key, campaign, date_created, code, error }: LeftOut, times: Times): string {
	// Most errors begin with the word that the code is.
	const why = error === null || error.startsWith(code) ? (error ?? code) : `${code}, ${error}`;
	// Send calls alone have no other name.
	const named = key === campaign ? key : `${key} (${campaign})`;
	return `${times.text(date_created)} ${named}: ${why}`;
}

/** A page that fits a screen tells the history of the newest message, and of those that did not leave. */
function isTold({ state }: PersonMessage, at: number): boolean {
	return at === 0 || state !== 'sent';
}

function moreLines(
	recent: readonly PersonMessage[],
	{ days, older }: { days: number | null; older: number },
): string[] {
	if (days === null) return [];
	const folded = recent.filter((one, at) => !isTold(one, at)).length;
	const more = [
		...(folded > 0 ? ['replies, opens and clicks of all'] : []),
		...(older > 0 ? [`${older} older`] : []),
	];
	return more.length === 0 ? [] : [`${more.join(', ')}: --all`];
}

function messageLines(message: PersonMessage, times: Times): string[] {
	return [messageLine(message, times), ...detailLines(message, times).map((line) => `  ${line}`)];
}

function messageLine({ id, subject, state, date_created, campaign }: PersonMessage, times: Times): string {
	const of = campaign == null ? '' : ` of campaign ${campaign}`;
	return `${times.text(date_created)} ${state} "${subject}"${of} ${id}`;
}
