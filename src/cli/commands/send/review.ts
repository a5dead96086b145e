/** The guided `send`: the message as its first recipient gets it, and what is done with it: changed, tested, sent. */

import { parseAddress } from '../../../api/address.js';
import { checkOf, refusalOf } from '../../frame/asking.js';
import type { FileSource } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, Declined } from '../../frame/errors.js';
import { classify, type ExitCode, exits } from '../../frame/exit.js';
import { inputName, isStream } from '../../frame/sources.js';
import { parseDuration } from '../../frame/values.js';
import { counted } from '../../render/units.js';
import { assertAllowed } from './audience.js';
import { assertCanDeliver } from './deliver.js';
import { type Found, withNamed } from './findings.js';
import { linted, warnOfContent, warnOfLinks, warnOfOwnLinks } from './lint.js';
import { type SendOptions, settled } from './options.js';
import { type Addressee, addresseeOf, asSubscriber, compose, sendTrial, warnOfMissing } from './preview.js';
import { askBody, askSubject } from './questions.js';
import { isMadeElsewhere, isOpaque, type Prepared, prepare } from './request.js';
import { fixedTime, whyNotAt, zoneOfTimes } from './timing.js';

/** How far the questions are. */
export interface Guided {
	options: SendOptions;
	/** As they were when the message was shown: that message is sent, whatever becomes of the files. */
	files: Partial<Pick<SendOptions, FileOption>>;
	/** What was sent for a test, as the end says it; null: nothing. */
	tried: string | null;
}

type Step = 'send' | 'later' | 'test' | 'skip' | 'text' | 'file' | 'subject' | 'cancel';

/**
 * The message is shown, and shown again after each change, until it is sent on: the number of recipients, null where only
 * staging tells. A no throws `Declined`.
 */
export async function decide(cx: CommandContext, guided: Guided): Promise<number | null> {
	const isPlannable = await canPlan(cx, guided.options);
	guided.files = readOnce(guided.options);
	for (let last: Step | null = null; ; ) {
		const { options } = guided;
		const shown = settled({ ...options, ...guided.files }, { isDryRun: cx.dryRun });
		const prepared = await prepare(cx, shown);
		const { count, look, found } = await audienceOf(cx, prepared, shown);
		if (last !== 'test' && last !== 'later') await preview(cx, look, { found, options: shown });
		const isTestable = look !== null;
		const rejected = options.skipInvalid ? 0 : (found?.findings.rejected ?? 0);
		await sayWhoIsNot(cx, options, { count, rejected });
		last = await cx.choose('What now?', stepsOf(options, { count, isPlannable, isTestable, rejected }));
		if (last === 'send') {
			if (options.to.length > 0) await agree(cx, prepared, options.to);
			return count;
		}
		if (last === 'later') {
			const time = await askTime(cx);
			if (time === null) continue;
			guided.options = { ...options, ...time };
			return count;
		}
		await take(cx, guided, last, { look, shown });
	}
}

async function sayWhoIsNot(
	cx: CommandContext,
	{ csv }: SendOptions,
	{ count, rejected }: Pick<Situation, 'count' | 'rejected'>,
): Promise<void> {
	if (rejected > 0) return cx.note(`as it is, it cannot be sent to ${counted(rejected, 'recipient')}`);
	if (count !== 0) return;
	const none = csv === undefined ? 'there is no active subscriber' : `${inputName(csv)} has no row`;
	await cx.warn(`${none} to send it to`);
}

/** A campaign asks the same once it is staged. */
function agree(cx: CommandContext, { request: { subject } }: Prepared, to: readonly string[]): Promise<void> {
	const mail = subject === undefined ? '' : ` "${subject}"`;
	return cx.confirm({ kind: 'mild', what: `send${mail} to ${counted(to.length, 'recipient')}` });
}

interface Situation {
	/** See `audienceOf`. */
	count: number | null;
	isPlannable: boolean;
	isTestable: boolean;
	/** Recipients that the campaign is refused for. */
	rejected: number;
}

function stepsOf(
	{ text, textFile, htmlFile, markdownFile, subject }: SendOptions,
	{ count, isPlannable, isTestable, rejected }: Situation,
): { name: string; value: Step }[] {
	// Standard input can be read once.
	const files = [textFile, htmlFile, markdownFile].filter((one) => one !== undefined && one.path !== null);
	const isAllowed = rejected === 0 && count !== 0;
	const others = count === null ? 'the others' : counted(count, 'other', 'others');
	const test = { name: 'send a test mail to yourself', value: 'test' as const };
	const steps: { name: string; value: Step; isThere: boolean }[] = [
		{
			name: count === null ? 'send it' : `send it to ${counted(count, 'recipient')}`,
			value: 'send',
			isThere: isAllowed,
		},
		{ name: 'send it at a later time', value: 'later', isThere: isPlannable && isAllowed },
		{ ...test, isThere: isTestable && isAllowed },
		{ name: 'change the text', value: 'text', isThere: text !== undefined },
		{
			name: `read ${files.map((file) => file?.name).join(' and ')} again`,
			value: 'file',
			isThere: files.length > 0,
		},
		{ name: 'change the subject', value: 'subject', isThere: subject !== undefined },
		{
			name: `leave out ${counted(rejected, 'recipient')} and go on with ${others}`,
			value: 'skip',
			isThere: !isAllowed && count !== 0,
		},
		// What is refused is to be mended first.
		{ ...test, isThere: isTestable && !isAllowed },
		{ name: 'cancel', value: 'cancel', isThere: true },
	];
	return steps.filter(({ isThere }) => isThere);
}

/** A campaign without a time, where the service keeps times. */
async function canPlan(cx: CommandContext, { to, at, in: wait, window }: SendOptions): Promise<boolean> {
	if (to.length > 0 || [at, wait, window].some((time) => time !== undefined)) return false;
	return (await (await cx.api()).capabilities()).ext.audiences !== undefined;
}

/** Null: Enter alone leads back. */
async function askTime(cx: CommandContext): Promise<Partial<Pick<SendOptions, 'at' | 'in'>> | null> {
	const zone = await zoneOfTimes(cx);
	const when = `When, by the clock of ${zone} (2026-12-01 09:00, tomorrow 9:00, in 2h; Enter goes back):`;
	const check = async (text: string) => {
		const tooLong = refusalOf(() => waitOf(text));
		if (tooLong !== null) return tooLong;
		return text.trim() === '' || waitOf(text) !== null ? null : whyNotAt(cx, text.trim());
	};
	const typed = (await cx.ask(when, { check })).trim();
	const wait = waitOf(typed);
	if (typed === '') return null;
	return wait === null ? { at: await fixedTime(cx, typed) } : { in: wait };
}

/** `in 2h`, `30 minutes`: milliseconds; null: it is no wait. Throws `UsageError` for one that is too long. */
function waitOf(text: string): number | null {
	const [, amount, unit = ''] =
		/^(?:in\s+)?(\d{1,9}(?:\.\d{1,3})?)\s*(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)$/i.exec(
			text.trim(),
		) ?? [];
	return amount === undefined ? null : parseDuration(`${amount}${unit.charAt(0).toLowerCase()}`, '--in');
}

/** Carries a step out behind which the message is shown again. */
async function take(
	cx: CommandContext,
	guided: Guided,
	step: Exclude<Step, 'send' | 'later'>,
	{ look, shown }: { look: Look | null; shown: SendOptions },
): Promise<void> {
	const { options } = guided;
	switch (step) {
		case 'cancel':
			throw new Declined();
		case 'skip':
			guided.options = { ...options, skipInvalid: true };
			return;
		case 'text':
			guided.options = { ...options, ...(await askBody(cx, 'text', options.text)) };
			return;
		case 'file':
			await readAgain(cx, guided);
			return;
		case 'subject':
			guided.options = { ...options, subject: await askSubject(cx, options.subject) };
			return;
		case 'test':
			if (look !== null) guided.tried = (await test(cx, look, shown)) ?? guided.tried;
	}
}

/** What cannot be read or sent is told, and the message stays the one that was shown. */
async function readAgain(cx: CommandContext, guided: Guided): Promise<void> {
	const files = readOnce(guided.options);
	try {
		await prepare(cx, settled({ ...guided.options, ...files }, { isDryRun: cx.dryRun }));
		guided.files = files;
	} catch (error) {
		await warnOf(cx, error, 'nothing was read');
	}
}

/** Throws what is no refusal of a command, and the end of this one. */
async function warnOf(cx: CommandContext, error: unknown, what: string): Promise<ExitCode> {
	if (cx.signal.aborted || error instanceof Declined || !(error instanceof CliError)) throw error;
	const { exit, message, hint } = classify(error);
	await (hint === null ? cx.warn(`${what}: ${message}`) : cx.warn(`${what}: ${message}`, hint));
	return exit;
}

/** Returns what became of it; null: it was not sent, which is told. */
async function test(cx: CommandContext, look: Look, options: SendOptions): Promise<string | null> {
	const own = parseAddress(options.from ?? '')?.address;
	const to = await cx.ask('Your address:', {
		check: await checkOf('address'),
		...(own !== undefined && { initial: own }),
	});
	try {
		assertAllowed(cx, [to]);
		await assertCanDeliver(cx, options);
		await sendTrial(cx, { ...look, to, options, isShown: true });
		return 'only the test mail was sent';
	} catch (error) {
		const exit = await warnOf(cx, error, 'the test mail');
		return exit === exits.queued ? 'only the test mail is queued' : null;
	}
}

const fileOptions = ['textFile', 'htmlFile', 'markdownFile', 'contextFile'] as const;
type FileOption = (typeof fileOptions)[number];

/** Each is read once. */
function readOnce(options: SendOptions): Guided['files'] {
	const given = fileOptions.flatMap((key) => {
		const file = options[key];
		return file === undefined ? [] : [[key, textOnce(file)] as const];
	});
	return Object.fromEntries(given);
}

function textOnce(file: FileSource): FileSource {
	let text: Promise<string> | null = null;
	const read = () => {
		text ??= file.text();
		return text;
	};
	return { ...file, text: read };
}

/** A message to look at: that of the first recipient. */
interface Look {
	prepared: Prepared;
	addressee: Addressee;
}

/** The recipients before staging, suppressed ones among them; null: they are known afterwards alone. */
async function audienceOf(
	cx: CommandContext,
	prepared: Prepared,
	options: SendOptions,
): Promise<{ count: number | null; look: Look | null; found: Found | null }> {
	const [to] = options.to;
	if (to !== undefined) {
		const addressee = await addresseeOf(cx, prepared, to);
		return { count: options.to.length, look: { prepared, addressee }, found: null };
	}
	if (options.csv !== undefined) {
		// What can be read once is for the campaign.
		if (await isStream(inputName(options.csv))) return { count: null, look: null, found: null };
		const { lookAtTable } = await import('./csv.js');
		return lookAtTable(cx, { prepared, file: options.csv, options });
	}
	const { lookAtList } = await import('./list.js');
	const checked = await linted(cx, prepared, { strict: options.strictVars ?? true });
	const { count, first, found } = await lookAtList(cx, checked, options);
	const addressee = first && asSubscriber(first.person, first.list.email_reason);
	return { count, look: addressee && { prepared: checked, addressee }, found };
}

/** What the first recipient gets, and what speaks against recipients. */
async function preview(
	cx: CommandContext,
	look: Look | null,
	{
		found,
		options: { bulk, skipInvalid, to },
	}: { found: Found | null; options: Pick<SendOptions, 'bulk' | 'skipInvalid' | 'to'> },
): Promise<void> {
	const named = look !== null && found !== null ? withNamed(look.prepared, found) : look?.prepared;
	if (look !== null && named !== undefined) {
		await show(cx, { ...look, prepared: named });
		await warnOfContent(cx, named, to);
		await (bulk ? warnOfLinks(cx, { bulk }) : warnOfOwnLinks(cx, named));
	}
	if (found === null || found.findings.rejected === 0) return;
	for (const line of found.findings.lines(found.of)) await cx.warn(skipInvalid ? `left out: ${line}` : line);
	// A name that is no variable's is to be mended.
	const name = found.findings.variables.find((one) => !look?.prepared.named?.includes(one));
	if (name !== undefined && !skipInvalid) await cx.hint(`a default is for those without: #${name}|TEXT#`);
}

/** As text. A service of others makes its messages by itself. */
async function show(cx: CommandContext, { prepared, addressee }: Look): Promise<void> {
	if (isOpaque(prepared) || (await isMadeElsewhere(cx))) return;
	const composed = await compose(cx, prepared, addressee);
	const { subject, text } = composed;
	const lines = text.trimEnd().split('\n');
	const cut =
		lines.length > mostLines
			? [...lines.slice(0, mostLines), `… ${lines.length - mostLines} more lines`]
			: lines;
	const body = cut.map((line) => `  ${line}`.trimEnd());
	await cx.note([`Subject: ${subject}`, `To: ${addressee.to}`, '', ...body, '']);
	await warnOfMissing(cx, composed);
}

/** Lines of the preview: the question stands below it on the same screen. */
const mostLines = 40;
