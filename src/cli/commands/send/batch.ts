/** `send --batch`: send requests as they are, one a line, as one job. */
import type { SendRequest } from '../../../api/inputs.js';
import type { RequestRow, RequestsSpec } from '../../../api/mailings.js';
import { isRecord } from '../../../api/schema/python.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import type { ExitCode } from '../../exit.js';
import { assertAllowed } from './allowed.js';
import { beginJob } from './begin.js';
import { countOf } from './counts.js';
import { assertCanDeliver } from './deliver.js';
import { assertExpected } from './expected.js';
import { runJob } from './job.js';
import { openJob } from './open.js';
import type { SendOptions } from './options.js';
import {
	assertAcceptable,
	compose,
	showDryRun,
	showPreview,
	wantsPreview,
	warnOfMissing,
} from './preview.js';
import { findTemplate, isOpaque, type Prepared } from './request.js';
import { assertRowOptions, rowJob } from './rows.js';
import { type OpenRows, openRequestRows, sourceName } from './source.js';
import { reasons, surveyRequests } from './survey.js';
import { sendTrial } from './trial.js';

export async function sendBatch(
	cx: CommandContext,
	options: SendOptions,
	file: string,
): Promise<ExitCode | undefined> {
	assertRowOptions(options, '--batch');
	assertNoContent(options);
	const lines = await openRequestRows(cx, file);
	try {
		if (wantsPreview(options) || cx.dryRun || options.testTo !== undefined)
			return await trial(cx, { lines, file, options });
		return await begin(cx, { lines, file, options });
	} finally {
		await lines.close();
	}
}

interface Sending {
	lines: OpenRows<RequestRow>;
	file: string;
	options: SendOptions;
}

async function begin(cx: CommandContext, { lines, file, options }: Sending): Promise<ExitCode> {
	const of = sourceName(file);
	const { place, name, isMadeUp } = await beginJob(cx, options, of);
	const { source } = lines;
	const spec: RequestsSpec = { requests: true, source, strict_vars: options.strictVars ?? true };
	const session = await openJob(cx, place, { name, spec });
	const watched = watchLinks(lines);
	const rows = async () => ({ kind: 'batch' as const, open: watched.lines });
	const { hasLinks } = watched;
	const known = { place, session, name, of, subject: null, bulk: false, hasLinks, options, rows };
	return runJob(cx, { ...rowJob(cx, known), isMadeUp });
}

/** The first request's message, to look at or to an address of one's own; a dry run reads the whole file besides. */
async function trial(cx: CommandContext, { lines, file, options }: Sending): Promise<ExitCode | undefined> {
	const { first, counts } = await surveyRequests(cx, lines, {
		how: cx.dryRun ? 'all' : 'first',
		strict: options.strictVars ?? true,
	});
	if (first === null) throw new UsageError(`${sourceName(file)} has no request that could be sent`);
	const prepared = await prepareFirst(cx, first);
	const to = first.to[0] ?? '';
	await assertAcceptable(cx, first);
	if (counts.rejected > 0)
		await cx.warn(`${countOf(counts.rejected, 'recipient')} would be refused: ${reasons(counts)}`);
	if (cx.dryRun) assertExpected({ found: counts.recipients, counted: sourceName(file), options });
	const requests = countOf(counts.requests, 'request');
	const what = `send the ${requests} of ${sourceName(file)} to ${countOf(counts.recipients, 'recipient')}`;
	if (isOpaque(prepared) && cx.dryRun) return cx.wouldDo(what, counts).then(() => undefined);
	const composed = await compose(cx, prepared, { to, subscriber: null, email_reason: null });
	if (wantsPreview(options)) return showPreview(cx, composed, options).then(() => undefined);
	if (cx.dryRun || options.testTo === undefined)
		return showDryRun(cx, composed, what, counts).then(() => undefined);
	assertAllowed(cx, [options.testTo]);
	await assertCanDeliver(cx, options);
	await warnOfMissing(cx, composed);
	const { cc, bcc, ...rest } = first;
	const request: SendRequest = { ...rest, type: 'TRANSACTIONAL', to: [options.testTo] };
	return sendTrial(cx, { request, subject: `"${composed.subject}"`, asFor: to, options });
}

async function prepareFirst(cx: CommandContext, { to: _, ...request }: SendRequest): Promise<Prepared> {
	const { template_unique_id: uuid } = request;
	return { request, template: uuid === undefined ? null : await findTemplate(cx, uuid) };
}

/** Each request says itself what is sent and by whom. */
function assertNoContent(options: SendOptions): void {
	const texts = [
		'from',
		'subject',
		'text',
		'textFile',
		'html',
		'htmlFile',
		'template',
		'contextFile',
	] as const;
	const others = ['tag', 'campaign'] as const;
	const given = [...texts, ...others].find((key) => options[key] !== undefined);
	const flag =
		given?.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`) ??
		(options.bulk ? 'bulk' : undefined) ??
		(options.disableInline ? 'disable-inline' : undefined) ??
		(options.map.length > 0 ? 'map' : undefined) ??
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
