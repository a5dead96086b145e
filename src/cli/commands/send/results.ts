/**
 * `--results FILE`: writes the outcome of each message as CSV, completely or not at all. Replaces only results of the
 * same campaign, so that a send never overwrites its input.
 */

import { open, stat } from 'node:fs/promises';
import {
	type Campaign,
	type CampaignResult,
	type Campaigns,
	isOfCalls,
	type LeavingOut,
	sayLeftOut,
} from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import { systemReason } from '../../../api/errors.js';
import { iterateSlices } from '../../../api/pages.js';
import type { Message, Uuid } from '../../../api/records.js';
import { TableError } from '../../../tables/finding.js';
import { createOutputFile } from '../../../tables/output-file.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { classify, exits, hinted } from '../../frame/exit.js';
import { csvCell } from '../../render/out.js';
import { rowError } from '../../verbs/address-faults.js';
import { walk } from '../../verbs/listing.js';
import type { CampaignPlace } from './place.js';
import { missingVariable } from './report.js';

const resultColumns = [
	...(['line', 'to', 'id', 'state', 'code', 'text', 'attempts', 'campaign_unique_id'] as const),
];
const head = `${resultColumns.join(',')}\r\n`;

export interface ResultLine extends Omit<CampaignResult, 'state'> {
	state: CampaignResult['state'] | 'left_out';
	campaign_unique_id: Uuid | null;
}

type ResultsFlag = '--results' | '--save';

/** Lines are written in blocks, because a million single writes would cost a million system calls. */
const blockLength = 64 * 1024;

export async function writeLines(
	cx: CommandContext,
	path: string,
	lines: AsyncIterable<ResultLine>,
	flag: ResultsFlag = '--results',
): Promise<void> {
	try {
		const file = await createOutputFile(path, 'replace');
		try {
			let text = head;
			for await (const line of lines) {
				text += `${resultColumns.map((name) => csvCell(line[name])).join(',')}\r\n`;
				if (text.length < blockLength) continue;
				await file.write(text);
				text = '';
			}
			await file.write(text);
			await file.finish();
		} finally {
			await file.discard();
		}
	} catch (cause) {
		if (!(cause instanceof Error) || !('syscall' in cause)) throw cause;
		const message = `${flag}: ${path} cannot be written: ${systemReason(cause)}`;
		throw new CliError('disk', exits.disk, message, { cause });
	}
	await cx.note(`results are in ${path}`);
}

export async function writeMessages(cx: CommandContext, path: string, ids: readonly Uuid[]): Promise<void> {
	const messages = await need(await cx.api(), 'messages');
	async function* lines(): AsyncGenerator<ResultLine> {
		for (const id of ids) yield lineOf(await messages.get(id, { signal: signalOfEnd(cx) }));
	}
	try {
		await writeLines(cx, path, lines());
	} catch (error) {
		const [first = 'ID'] = ids;
		const look = mailctl('messages', 'get', ids.length === 1 ? first : 'ID');
		throw hinted(error, [['only the results are missing: ', look, ' shows the outcome']]);
	}
}

export async function writeCampaign(
	cx: CommandContext,
	place: CampaignPlace,
	id: Uuid,
	{ isRows, path }: { isRows: boolean; path: string },
): Promise<void> {
	await writeLines(cx, path, isRows || place.isForeign ? rowLines(cx, place, id) : messageLines(cx, id));
}

export async function* resultLines(
	cx: CommandContext,
	place: CampaignPlace,
	campaign: Campaign,
): AsyncGenerator<ResultLine> {
	const { id, list_id, position } = campaign;
	const isOverList = list_id !== null && position === 0;
	if (place.isForeign || !(isOverList || isOfCalls(campaign))) yield* rowLines(cx, place, id);
	else {
		yield* messageLines(cx, id);
		yield* leftOutLines(cx, id);
	}
}

const endMs = 10_000;

/** An interrupted command still writes its results, within a time limit. */
function signalOfEnd({ signal }: Pick<CommandContext, 'signal'>): AbortSignal {
	return signal.aborted ? AbortSignal.timeout(endMs) : signal;
}

/** Returns the reply's code (RFC 5321 s.4.2); null for a text without a code. */
function replyCode(text: string | null): string | null {
	return /^([2-5]\d\d)\b/.exec(text ?? '')?.[1] ?? null;
}

function lineOf({ to, id, state, last_reply, attempts, campaign_unique_id }: Message): ResultLine {
	const reply = { code: replyCode(last_reply), text: last_reply };
	return { line: null, to, id, state, ...reply, attempts, campaign_unique_id };
}

async function* messageLines(cx: CommandContext, campaign_unique_id: Uuid): AsyncGenerator<ResultLine> {
	const messages = await need(await cx.api(), 'messages');
	for await (const message of walk(messages, { campaign_unique_id }, { signal: signalOfEnd(cx) }))
		yield lineOf(message);
}

async function* rowLines(cx: CommandContext, { campaigns, isForeign }: CampaignPlace, id: Uuid) {
	for await (const result of eachResult(cx, campaigns, id)) {
		const text = result.text && rowError({ code: result.code, error: result.text }, result.to);
		const code = result.code ?? replyCode(text);
		yield { ...result, text, code, campaign_unique_id: isForeign ? null : id };
	}
}

async function* leftOutLines(cx: CommandContext, id: Uuid): AsyncGenerator<ResultLine> {
	const api = await cx.api();
	const { audiences, campaigns } = (await api.capabilities()).ext;
	if (audiences === undefined) return;
	const signal = signalOfEnd(cx);
	const known = new Map<string, string>();
	const nameOf = async (code: LeavingOut['code'], detail: string): Promise<string | undefined> => {
		if (code === 'excluded') return (await api.lists.get(Number(detail)).catch(() => null))?.name;
		if (code !== 'opened' && code !== 'not_opened') return undefined;
		return (await campaigns?.page({ id: detail, page_size: 1 }))?.results[0]?.key;
	};
	const names = {
		list: (list: string) => JSON.stringify(known.get(list) ?? list),
		campaign: (campaign: string) => known.get(campaign) ?? campaign,
	};
	for await (const { results } of iterateSlices(0, (after) => audiences.leftOut(id, { after }, { signal })))
		for (const { to, code, detail } of results) {
			if (detail !== null && !known.has(detail)) known.set(detail, (await nameOf(code, detail)) ?? detail);
			const state = code === 'suppressed' ? code : code === missingVariable ? 'rejected' : 'left_out';
			const text = sayLeftOut({ code, detail }, names);
			yield { line: null, to, id: null, state, code, text, attempts: 0, campaign_unique_id: id };
		}
}

export async function* eachResult(
	cx: CommandContext,
	campaigns: Campaigns,
	id: string,
	only: { only?: 'findings' } = {},
): AsyncGenerator<CampaignResult, void, undefined> {
	const signal = signalOfEnd(cx);
	const pages = iterateSlices(0, (after) => campaigns.results(id, { ...only, after }, { signal }));
	for await (const { results } of pages) yield* results;
}

type OfCampaign = { place: CampaignPlace; id: Uuid } | null;

/**
 * Checks before the send that the file can be written. Allows an empty file, a pipe, a device and the results of
 * `campaign`. Throws `UsageError`.
 */
export async function assertResults(
	path: string | undefined,
	campaign: OfCampaign,
	flag: ResultsFlag = '--results',
): Promise<void> {
	if (path === undefined) return;
	const end = flag === '--results' ? '; nothing was sent' : '';
	if (path === '-') throw new UsageError(`${flag} needs a file: standard output has the answer`);
	const there = await stat(path).catch(() => null);
	// Do not open a pipe here: closing it would end its reader's input.
	if (there !== null && !there.isFile() && !there.isDirectory()) return;
	if (there?.isFile() && there.size > 0 && !(await isOfCampaign(path, campaign)))
		throw new UsageError(`${flag}: ${path} exists already${end}`);
	try {
		await (await createOutputFile(path, 'replace')).discard();
	} catch (cause) {
		const what =
			cause instanceof TableError ? cause.message : `${path} cannot be written: ${systemReason(cause)}`;
		const { hint } = classify(cause);
		throw new UsageError(`${flag}: ${what}${end}`, { ...(hint !== null && { hint }), cause });
	}
}

/** True if the file contains only the header, or its first results belong to the campaign. */
async function isOfCampaign(path: string, campaign: OfCampaign): Promise<boolean> {
	const file = await open(path).catch(() => null);
	if (file === null) return false;
	try {
		const { buffer, bytesRead } = await file.read(Buffer.alloc(blockLength), 0, blockLength, 0);
		const text = buffer.toString('utf8', 0, bytesRead);
		if (text === head || campaign === null) return text === head;
		const { place, id } = campaign;
		// Results of another service do not name the campaign, so its first messages identify them.
		const marks = place.isForeign
			? (await place.campaigns.results(id, {})).results.map((one) => `,${one.id},`)
			: [`,${id}\r\n`];
		return text.startsWith(head) && marks.some((mark) => text.includes(mark));
	} finally {
		await file.close();
	}
}
