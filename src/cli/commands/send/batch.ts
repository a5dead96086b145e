/** `send --batch`: send requests as they are, one a line, as one campaign. */

import { AddressSet } from '../../../api/address-set.js';
import type { CampaignSource, RequestRow, RequestsSpec } from '../../../api/campaigns.js';
import { ApiError, invalid } from '../../../api/errors.js';
import { builtInVariables } from '../../../api/fields.js';
import type { SendRequest } from '../../../api/inputs.js';
import { isRecord } from '../../../api/json.js';
import { type CheckedSend, sendFields } from '../../../api/messages.js';
import { noValueText } from '../../../api/refusals.js';
import { usedVariables } from '../../../api/variables.js';
import { missingVariables } from '../../../engine/rules/meta.js';
import { type ParsedRequest, parseRequest } from '../../../engine/rules/request-rows.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { isStream } from '../../frame/sources.js';
import { counted } from '../../render/units.js';
import { walk } from '../../verbs/listing.js';
import { namedIn, readAttachments, uploadAttachments } from './attach.js';
import { assertAllowed, assertFindings, Survey, showPlan } from './audience.js';
import { type Beginning, beginCampaign, foreseeCampaign, openCampaign } from './begin.js';
import { assertCanDeliver } from './deliver.js';
import { findingsFor, metBefore, missingVariable, warnOfFindings } from './findings.js';
import { warnOfLinks } from './lint.js';
import type { SendOptions } from './options.js';
import {
	addresseeOf,
	assertAcceptable,
	compose,
	foreseeing,
	sendTrial,
	showRequest,
	wantsPreview,
} from './preview.js';
import { notAmong, shownKey } from './preview-as.js';
import { countsOf, showPreview } from './preview-output.js';
import { assertExpected } from './report.js';
import { findTemplate, isMadeElsewhere, type Prepared } from './request.js';
import { addressesOfRequest, assertRowOptions, rowCampaign } from './rows.js';
import { runCampaign } from './run.js';
import {
	glance,
	type Input,
	known,
	type OpenRows,
	openRequestRows,
	placeToTell,
	sourceName,
} from './source.js';

export async function sendBatch(
	cx: CommandContext,
	options: SendOptions,
	file: string,
): Promise<ExitCode | undefined> {
	assertRowOptions(options, '--batch');
	assertNoContent(options);
	const files = await readAttachments(cx, options.attach);
	if (!wantsPreview(options) && !cx.dryRun && options.testTo === undefined)
		return begin(cx, { file, options, files });
	if (!isWhole(cx, options))
		return withRows(cx, { input: glance(cx, file, '--batch'), files, options }, (lines) =>
			look(cx, { lines, file, options, files }),
		);
	const input = await known(cx, file, '--batch');
	return withRows(cx, { input, files, options }, async (lines) => {
		const spec = requestsSpec(lines, input.origin, options);
		if (await foreseeCampaign(cx, { options, of: sourceName(file), spec })) return undefined;
		return look(cx, { lines, file, options, files });
	});
}

/** A dry run of all requests, not of a trial. */
function isWhole(cx: CommandContext, { testTo }: SendOptions): boolean {
	return cx.dryRun && testTo === undefined;
}

async function withRows<T>(
	cx: CommandContext,
	{ input, files, options }: { input: Input; files: readonly FileToSend[]; options: SendOptions },
	use: (lines: OpenRows<RequestRow>) => Promise<T>,
): Promise<T> {
	const lines = await openRequestRows(cx, input, {
		attachments: namedIn(files),
		track: options.track,
	});
	try {
		return await use(lines);
	} finally {
		await lines.close();
	}
}

function requestsSpec(
	{ reading }: OpenRows<RequestRow>,
	origin: CampaignSource,
	{ strictVars }: SendOptions,
): RequestsSpec {
	return { requests: true, source: { ...origin, ...reading }, strict_vars: strictVars ?? true };
}

interface Sending {
	lines: OpenRows<RequestRow>;
	file: string;
	options: SendOptions;
	/** They go with each request. */
	files: readonly FileToSend[];
}

async function begin(
	cx: CommandContext,
	{ file, options, files }: Omit<Sending, 'lines'>,
): Promise<ExitCode> {
	const of = sourceName(file);
	const beginning = await beginCampaign(cx, options, of);
	const input = await known(cx, file, '--batch');
	await uploadAttachments(cx, files);
	return withRows(cx, { input, files, options }, (lines) =>
		open(cx, { lines, file, options, files }, beginning, input.origin),
	);
}

async function open(
	cx: CommandContext,
	{ lines, file, options }: Sending,
	beginning: Beginning,
	origin: CampaignSource,
): Promise<ExitCode> {
	const of = sourceName(file);
	const { place } = beginning;
	const session = await openCampaign(cx, beginning, requestsSpec(lines, origin, options));
	const { key: name, begun } = session;
	const watched = watchLinks(lines);
	const rows = async () => ({ kind: 'batch' as const, open: watched.lines });
	const { hasLinks } = watched;
	const ofRows = { of, source: placeToTell(origin), subject: null, bulk: false, hasLinks, rows };
	return runCampaign(cx, { ...rowCampaign(cx, { place, session, name, options, ...ofRows }), begun });
}

/** The first request's message, to look at or to an address of one's own; a dry run reads the whole file besides. */
async function look(cx: CommandContext, sending: Sending): Promise<ExitCode | undefined> {
	const { file, options, files } = sending;
	const { lines, hasLinks } = watchLinks(sending.lines);
	const found = await surveyed(cx, { ...sending, lines });
	const { first, recipients, rejected } = found;
	if (isWhole(cx, options)) {
		await assertFindings(cx, found, options);
		assertExpected({ found: recipients, where: sourceName(file), options });
		await warnOfLinks(cx, { bulk: hasLinks() });
	}
	if (first === null && options.previewAs !== undefined)
		throw notAmong(options, `the recipients of ${sourceName(file)}`);
	if (first === null) throw new UsageError(`${sourceName(file)} has no request that could be sent`);
	const prepared = await prepareFirst(cx, first, files);
	await assertAcceptable(cx, first.request);
	if (isWhole(cx, options)) return dryRun(cx, sending, { found, first, prepared });
	const told = { findings: found.findings, of: recipients + rejected };
	await warnOfFindings(cx, told, options);
	const addressee = await addresseeOf(cx, prepared, shownOf(first, options));
	if (wantsPreview(options) || options.testTo === undefined) {
		const composed = await compose(cx, prepared, addressee);
		const counts = async () => countsOf((await isStream(file)) ? null : told);
		return showPreview(cx, { composed, prepared, counts }, options).then(() => undefined);
	}
	assertAllowed(cx, [options.testTo]);
	await assertCanDeliver(cx, options);
	return sendTrial(cx, { prepared, addressee, to: options.testTo, options });
}

/** What would be done, with the first message where it is made here. With `--skip-invalid` it is 9, as of the campaign. */
async function dryRun(
	cx: CommandContext,
	{ file, options }: Sending,
	{ found, first, prepared }: { found: Survey<First>; first: First; prepared: Prepared },
): Promise<ExitCode> {
	const { read, recipients, duplicates, rejected } = found;
	const counts = { requests: read, recipients, duplicates, rejected };
	const what = `send the ${counted(read, 'request')} of ${sourceName(file)} to ${counted(recipients, 'recipient')}`;
	const { request } = first;
	const message = async () => compose(cx, prepared, await addresseeOf(cx, prepared, shownOf(first, options)));
	if (await isMadeElsewhere(cx)) await showRequest(cx, { request, what, plan: counts });
	else
		await showPlan(cx, {
			prepared,
			options,
			what: () => what,
			plan: { ...counts, send: request },
			first: { request: () => request, message },
		});
	return rejected > 0 ? exits.partly : exits.done;
}

/** A request that can be sent, as it is given and as it is checked. */
interface First {
	request: SendRequest;
	send: CheckedSend;
}

function shownOf({ send }: First, { previewAs }: SendOptions): string {
	return previewAs ?? send.to[0]?.address ?? '';
}

/**
 * Read as a campaign would read them; a trial, and a look at a pipe, no further than the first that can be sent. Recipients
 * that come again are known by 64 bits of a hash, 11 to 21 bytes each. Templates and lists of requests are looked up only
 * where they are staged.
 */
async function surveyed(cx: CommandContext, { lines, options, file }: Sending): Promise<Survey<First>> {
	const isFirstEnough = options.testTo !== undefined || (!isWhole(cx, options) && (await isStream(file)));
	const found = new Survey<First>(findingsFor(cx));
	const check = await checker(cx, options);
	const met = new AddressSet();
	const shown = shownKey(options);
	const isAny = shown === null;
	for await (const row of lines.rows) {
		found.read += 1;
		if (isWhole(cx, options)) assertAllowed(cx, addressesOfRequest(row));
		const checked = await check(row);
		if (checked.kind === 'rejected') found.reject(checked, { to: checked.to ?? '', line: row.line });
		else {
			const { send, alike } = checked;
			let fresh = 0;
			for (const { address, key } of send.to)
				if (met.add(`${key}\n${alike}`)) fresh += 1;
				else found.reject(metBefore(address), { to: address, line: row.line });
			// Checked: it is what a send call takes.
			const request = row.request as SendRequest;
			found.add({ request, send }, fresh, isAny || send.to.some(({ key }) => key === shown));
		}
		if (found.first !== null && isFirstEnough) break;
	}
	return found;
}

/** A request that can be sent, or what is wrong with it. */
async function checker(
	cx: CommandContext,
	options: SendOptions,
): Promise<(row: RequestRow) => Promise<ParsedRequest>> {
	const { strictVars = true } = options;
	const api = await cx.api();
	const isOurs = (await api.capabilities()).ext.campaigns !== undefined;
	const fields = new Set<string>(builtInVariables);
	for await (const { variable } of walk(api.fields, {}, { signal: cx.signal })) fields.add(variable);
	// The first is to be shown, or refused by its own complaint.
	const foresee = isWhole(cx, options) ? await foreseeing(cx) : async () => {};
	return async (row) => {
		const parsed = parseRequest(row, isOurs ? 'smtp' : 'api');
		if (parsed.kind === 'invalid') throw invalid(parsed.errors);
		const request = parsed.value;
		// A request of the wrong shape is reported by its line alone.
		if (request.kind === 'rejected')
			return isOurs && sendFields.parse(row.request).kind === 'valid' ? request : { ...request, to: '' };
		try {
			await foresee(row.request as SendRequest);
		} catch (error) {
			if (!(error instanceof ApiError) || error.fields === null) throw error;
			const to = request.send.to.map(({ address }) => address).join(', ');
			return { kind: 'rejected', code: 'invalid', error: error.message, to };
		}
		// A field may have a value for the recipient: only the service knows.
		const missing = strictVars ? missingIn(request.send).filter((name) => !fields.has(name)) : [];
		if (missing.length === 0) return request;
		return { kind: 'rejected', code: missingVariable, error: noValueText(missing), to: '' };
	};
}

/** A template does not tell what it uses. */
function missingIn({ subject, text_body, html_body, template_unique_id, context }: CheckedSend): string[] {
	if (template_unique_id !== null) return [];
	const used = usedVariables({ subject: subject ?? '', text: text_body, html: html_body });
	return missingVariables({}, used, context);
}

/** With its values as they are checked: a number is a text, an address has its form. */
async function prepareFirst(
	cx: CommandContext,
	{ request: { to: _, ...given }, send }: First,
	files: readonly FileToSend[],
): Promise<Prepared> {
	const { envelope, from_key: _key, ...content } = send;
	const checked: Record<string, unknown> = { ...content, ...envelope };
	const values = Object.entries(given).map(([key, value]) => [key, checked[key] ?? value] as const);
	// Only the values differ: the keys are those that were given.
	const request = Object.fromEntries(values) as typeof given;
	const uuid = send.template_unique_id;
	const template = uuid === null ? null : await findTemplate(cx, uuid);
	return { request, template, ...(files.length > 0 && { files }) };
}

/** Each request names its content and its sender. */
function assertNoContent(options: SendOptions): void {
	const texts = [
		'from',
		'subject',
		'text',
		'textFile',
		'html',
		'htmlFile',
		'markdownFile',
		'template',
		'contextFile',
	] as const;
	const given = [...texts, 'tag' as const].find((key) => options[key] !== undefined);
	const flag =
		given?.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`) ??
		(options.bulk ? 'bulk' : undefined) ??
		(options.transactional ? 'transactional' : undefined) ??
		(options.disableInline ? 'disable-inline' : undefined) ??
		(options.map.length > 0 ? 'map' : undefined) ??
		(options.encoding === undefined ? undefined : 'encoding') ??
		(options.header.length > 0 ? 'header' : undefined) ??
		(options.replyTo.length > 0 ? 'reply-to' : undefined) ??
		(Object.keys(options.context).length > 0 ? 'context' : undefined);
	if (flag !== undefined)
		throw new UsageError(`--${flag} does not go with --batch: its requests say everything themselves`);
}

/** The lines, and whether any that went by is bulk mail or has a link to unsubscribe: only then is there one to warn of. */
function watchLinks(lines: OpenRows<RequestRow>): { lines: OpenRows<RequestRow>; hasLinks: () => boolean } {
	let found = false;
	async function* rows() {
		for await (const row of lines.rows) {
			found ||= isRecord(row.request) && hasOurLinks(row.request);
			yield row;
		}
	}
	return { lines: { ...lines, rows: rows() }, hasLinks: () => found };
}

function hasOurLinks({ type, text_body, html_body }: Record<string, unknown>): boolean {
	return type === 'BULK' || [text_body, html_body].some((body) => /#unsubscribe_url#/.test(String(body)));
}
