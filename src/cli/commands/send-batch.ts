/** `send --batch`: send requests as they are, one a line, as one job. */
import type { SendRequest } from '../../api/inputs.js';
import type { RequestRow, RequestsSpec } from '../../api/mailings.js';
import { sendFields } from '../../api/messages.js';
import { isRecord } from '../../api/schema/python.js';
import type { CommandContext } from '../context.js';
import { UsageError } from '../errors.js';
import type { ExitCode } from '../exit.js';
import { assertAllowed } from './send-allowed.js';
import { assertCanDeliver } from './send-deliver.js';
import { assertConsent, runJob } from './send-job.js';
import { jobName } from './send-name.js';
import { openJob } from './send-open.js';
import type { SendOptions } from './send-options.js';
import { mailingPlace } from './send-place.js';
import { assertAcceptable, compose, showDryRun, showPreview, wantsPreview } from './send-preview.js';
import { findTemplate, isOpaque, type Prepared } from './send-request.js';
import { assertResults, inputsOf, knownMailing } from './send-results-place.js';
import { assertRowOptions, rowJob } from './send-rows.js';
import { type OpenRows, openRequestRows, sourceName } from './send-source.js';
import { sendTrial } from './send-trial.js';

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
	const place = await mailingPlace(cx);
	assertConsent(cx, options, of);
	await assertCanDeliver(cx, options);
	const name = jobName(options);
	await assertResults(options.results, {
		inputs: inputsOf(options),
		mailing: () => knownMailing(place.mailings, options.job),
	});
	const { source } = lines;
	const spec: RequestsSpec = { requests: true, source, strict_vars: options.strictVars ?? true };
	const session = await openJob(cx, place, { name, spec });
	const rows = async () => ({ kind: 'batch' as const, open: lines });
	// Whether it is bulk mail, each request says for itself.
	const known = { place, session, name, of, subject: null, bulk: true, options, rows };
	return runJob(cx, { ...rowJob(cx, known), isMadeUp: options.job === undefined });
}

/** The first request's message, to look at or to an address of one's own; a dry run reads the whole file besides. */
async function trial(cx: CommandContext, { lines, file, options }: Sending): Promise<ExitCode | undefined> {
	const { first, counts } = await survey(lines, cx.dryRun ? 'all' : 'first');
	if (first === null) throw new UsageError(`${sourceName(file)} has no request that could be sent`);
	const prepared = await prepareFirst(cx, first);
	const to = first.to[0] ?? '';
	await assertAcceptable(cx, first);
	const what = `send the ${counts.requests} requests of ${sourceName(file)} to ${counts.recipients} recipients`;
	if (isOpaque(prepared) && cx.dryRun) return cx.wouldDo(what, counts).then(() => undefined);
	const composed = await compose(cx, prepared, { to, subscriber: null, email_reason: null });
	if (wantsPreview(options)) return showPreview(cx, composed, options).then(() => undefined);
	if (cx.dryRun || options.testTo === undefined)
		return showDryRun(cx, composed, what, counts).then(() => undefined);
	assertAllowed(cx, [options.testTo]);
	await assertCanDeliver(cx, options);
	const { cc, bcc, ...rest } = first;
	const request: SendRequest = { ...rest, type: 'TRANSACTIONAL', to: [options.testTo] };
	return sendTrial(cx, { request, subject: `"${composed.subject}"`, asFor: to, options });
}

async function prepareFirst(cx: CommandContext, { to: _, ...request }: SendRequest): Promise<Prepared> {
	const { template_unique_id: uuid } = request;
	return { request, template: uuid === undefined ? null : await findTemplate(cx, uuid) };
}

interface Counts {
	requests: number;
	/** Addresses of the requests that can be sent. */
	recipients: number;
	rejected: number;
}

async function survey(
	lines: OpenRows<RequestRow>,
	how: 'first' | 'all',
): Promise<{ first: SendRequest | null; counts: Counts }> {
	const counts: Counts = { requests: 0, recipients: 0, rejected: 0 };
	let first: SendRequest | null = null;
	for await (const { request } of lines.rows) {
		counts.requests += 1;
		const parsed = sendFields.parse(request);
		if (parsed.kind === 'invalid') {
			counts.rejected += 1;
			continue;
		}
		counts.recipients += parsed.value.to.length;
		first ??= checkedRequest(request);
		if (how === 'first') break;
	}
	return { first, counts };
}

/** Checked just before by the schema of send requests. */
function checkedRequest(request: unknown): SendRequest | null {
	return isRecord(request) ? (request as unknown as SendRequest) : null;
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
