/** The guided `send`: the message of its first recipient, and its next step: changed, tested, sent. */

import { parseAddress } from '../../../api/address.js';
import { checkOf, refusalOf as faultOf } from '../../frame/asking.js';
import { type FileSource, flagOf } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, Declined } from '../../frame/errors.js';
import { classify, type ExitCode, exits } from '../../frame/exit.js';
import { inputName, isStream } from '../../frame/sources.js';
import { parseDuration } from '../../frame/values.js';
import { counted } from '../../render/units.js';
import type { Findings } from './findings.js';
import { warnOfContent, warnOfLinks, warnOfOwnLinks } from './lint.js';
import { type SendOptions, settled } from './options.js';
import { type Addressee, addresseeOf, compose, sendTrial, warnOfMissing } from './preview.js';
import { isMadeElsewhere, isOpaque, type Prepared, prepare } from './request.js';
import { assertAllowed, audienceOf, withNamed } from './stage.js';
import { fixedTime, planOf, refusalOf } from './timing.js';
import { assertCanDeliver } from './watch.js';

export interface Guided {
	options: SendOptions;
	/** As they were when the message was shown: that message is sent, even when the files change. */
	files: Partial<Pick<SendOptions, FileOption>>;
	/** The test mail, as the end says it; null: none was sent. */
	tried: string | null;
}

/** The message of the first recipient. */
interface Look {
	prepared: Prepared;
	addressee: Addressee;
}

/** The recipients before staging, suppressed ones among them; null: only staging tells. */
interface Seen {
	count: number | null;
	look: Look | null;
	findings: Findings | null;
}

/**
 * The message is shown, and shown again after each change, until it is sent on: the number of recipients, null where only
 * staging tells. A no throws `Declined`.
 */
export async function decide(cx: CommandContext, guided: Guided): Promise<number | null> {
	guided.files = readOnce(guided.options);
	for (let last: Step | null = null; ; ) {
		const { options } = guided;
		const shown = settled({ ...options, ...guided.files }, { isDryRun: cx.dryRun });
		const seen = await lookAt(cx, shown);
		if (last !== 'test' && last !== 'later') await preview(cx, seen, shown);
		last = await chooseStep(cx, options, seen);
		// A campaign asks the same once it is staged.
		if (last === 'send' && options.to.length > 0) await agree(cx, seen.look, options.to);
		const time = last === 'later' ? await askTime(cx) : null;
		if (time !== null) guided.options = { ...options, ...time };
		if (last === 'send' || time !== null) return seen.count;
		await take(cx, guided, last, { look: seen.look, shown });
	}
}

async function chooseStep(cx: CommandContext, options: SendOptions, seen: Seen): Promise<Step> {
	const rejected = options.skipInvalid ? 0 : (seen.findings?.rejected ?? 0);
	if (rejected > 0) await cx.note(`as it is, it cannot be sent to ${counted(rejected, 'recipient')}`);
	else if (seen.count === 0) await cx.warn('there is no recipient to send it to');
	return cx.choose('What now?', await stepsOf(cx, options, { ...seen, rejected }));
}

/** Carries out a step behind which the message is shown again. */
async function take(
	cx: CommandContext,
	guided: Guided,
	step: Exclude<Step, 'send'>,
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
		case 'subject':
			guided.options = { ...options, subject: await askSubject(cx, options.subject) };
			return;
		case 'file':
			await readAgain(cx, guided);
			return;
		case 'test':
			if (look !== null) guided.tried = (await test(cx, look, shown)) ?? guided.tried;
			return;
		case 'later':
			return;
	}
}

async function lookAt(cx: CommandContext, options: SendOptions): Promise<Seen> {
	const [to] = options.to;
	const isOnce = options.csv !== undefined && (await isStream(inputName(options.csv)));
	if (to !== undefined || isOnce) {
		const prepared = await prepare(cx, options);
		// A pipe can be read once, which is for the campaign.
		if (to === undefined) return { count: null, look: null, findings: null };
		const addressee = await addresseeOf(cx, prepared, to);
		return { count: options.to.length, look: { prepared, addressee }, findings: null };
	}
	const audience = await audienceOf(cx, options);
	try {
		await audience.open(false);
		const { recipients: count, findings, shown: look } = await audience.survey('look');
		return { count, look, findings };
	} finally {
		await audience.close();
	}
}

/** The message of the first recipient, and the findings about recipients. */
async function preview(
	cx: CommandContext,
	{ count, look, findings }: Seen,
	{ bulk, skipInvalid }: SendOptions,
): Promise<void> {
	if (look !== null) {
		const named = findings === null ? look.prepared : withNamed(look.prepared, findings);
		await show(cx, { ...look, prepared: named });
		await warnOfContent(cx, named);
		await (bulk ? warnOfLinks(cx, { bulk }) : warnOfOwnLinks(cx, named));
	}
	if (findings === null || findings.rejected === 0) return;
	await findings.warn(cx, (count ?? 0) + findings.rejected, skipInvalid);
	// A default does not help a misspelled name.
	const name = findings.variables.find((one) => !look?.prepared.named?.includes(one));
	if (name !== undefined && !skipInvalid) await cx.hint(`a default is for those without: #${name}|TEXT#`);
}

/** Lines of the preview: the question stands below it on the same screen. */
const mostLines = 40;

/** As text. A service of others makes its messages by itself. */
async function show(cx: CommandContext, { prepared, addressee }: Look): Promise<void> {
	if (isOpaque(prepared) || (await isMadeElsewhere(cx))) return;
	const composed = await compose(cx, prepared, addressee);
	const lines = composed.text.trimEnd().split('\n');
	const more = lines.length > mostLines ? [`… ${lines.length - mostLines} more lines`] : [];
	const body = [...lines.slice(0, mostLines), ...more].map((line) => `  ${line}`.trimEnd());
	await cx.note([`Subject: ${composed.subject}`, `To: ${addressee.to}`, '', ...body, '']);
	await warnOfMissing(cx, composed);
}

function agree(cx: CommandContext, look: Look | null, to: readonly string[]): Promise<void> {
	const subject = look?.prepared.request.subject;
	const mail = subject === undefined ? '' : ` "${subject}"`;
	return cx.confirm({ kind: 'mild', what: `send${mail} to ${counted(to.length, 'recipient')}` });
}

type Step = 'send' | 'later' | 'test' | 'skip' | 'text' | 'file' | 'subject' | 'cancel';

async function stepsOf(
	cx: CommandContext,
	options: SendOptions,
	{ count, look, rejected }: Seen & { rejected: number },
): Promise<{ name: string; value: Step }[]> {
	const { text, textFile, htmlFile, markdownFile, subject, to, at, in: wait, window } = options;
	// Standard input can be read once.
	const files = [textFile, htmlFile, markdownFile].filter((one) => one !== undefined && one.path !== null);
	const isTimed = [at, wait, window].some((time) => time !== undefined);
	const isPlannable = (await (await cx.api()).capabilities()).ext.audiences !== undefined;
	const isAllowed = rejected === 0 && count !== 0;
	const others = count === null ? 'the others' : counted(count, 'other', 'others');
	const recipients = count === null ? '' : ` to ${counted(count, 'recipient')}`;
	const step = (value: Step, name: string, isThere: boolean) => (isThere ? [{ name, value }] : []);
	const test = (isThere: boolean) => step('test', 'send a test mail to yourself', look !== null && isThere);
	return [
		...step('send', `send it${recipients}`, isAllowed),
		...step('later', 'send it at a later time', isAllowed && isPlannable && to.length === 0 && !isTimed),
		...test(isAllowed),
		...step('text', 'change the text', text !== undefined),
		...step('file', `read ${files.map((file) => file?.name).join(' and ')} again`, files.length > 0),
		...step('subject', 'change the subject', subject !== undefined),
		...step(
			'skip',
			`leave out ${counted(rejected, 'recipient')} and go on with ${others}`,
			!isAllowed && count !== 0,
		),
		// A refused mail is to be mended first.
		...test(!isAllowed),
		...step('cancel', 'cancel', true),
	];
}

/** Null: Enter alone leads back. */
async function askTime(cx: CommandContext): Promise<Partial<Pick<SendOptions, 'at' | 'in'>> | null> {
	const { time_zone } = await planOf(cx, '--at', {});
	const when = `When, by the clock of ${time_zone} (2026-12-01 09:00, tomorrow 9:00, in 2h; Enter goes back):`;
	const check = async (text: string) => {
		const tooLong = faultOf(() => waitOf(text));
		if (tooLong !== null) return tooLong;
		if (text.trim() === '' || waitOf(text) !== null) return null;
		return planOf(cx, '--at', { at: text.trim() }).then(
			() => null,
			(error: unknown) => refusalOf(error).message,
		);
	};
	const typed = (await cx.ask(when, { check })).trim();
	const wait = waitOf(typed);
	if (typed === '') return null;
	return wait === null ? { at: await fixedTime(cx, typed) } : { in: wait };
}

/** `in 2h`, `30 minutes`: milliseconds; null: another form. Throws `UsageError` for one that is too long. */
function waitOf(text: string): number | null {
	const [, amount, unit = ''] =
		/^(?:in\s+)?(\d{1,9}(?:\.\d{1,3})?)\s*(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)$/i.exec(
			text.trim(),
		) ?? [];
	return amount === undefined ? null : parseDuration(`${amount}${unit.charAt(0).toLowerCase()}`, '--in');
}

/** A file that cannot be read is told, and the message stays the one that was shown. */
async function readAgain(cx: CommandContext, guided: Guided): Promise<void> {
	const files = readOnce(guided.options);
	try {
		await prepare(cx, settled({ ...guided.options, ...files }, { isDryRun: cx.dryRun }));
		guided.files = files;
	} catch (error) {
		await warnOf(cx, error, 'nothing was read');
	}
}

/** Throws an error that no command refused with, and the end of this one. */
async function warnOf(cx: CommandContext, error: unknown, text: string): Promise<ExitCode> {
	if (cx.signal.aborted || error instanceof Declined || !(error instanceof CliError)) throw error;
	const { exit, message, hint } = classify(error);
	await (hint === null ? cx.warn(`${text}: ${message}`) : cx.warn(`${text}: ${message}`, hint));
	return exit;
}

/** The end of the test mail; null: it was not sent, which is told. */
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

export function askSubject(cx: CommandContext, initial?: string): Promise<string> {
	const check = async (text: string) => (text.trim() === '' ? 'a subject is needed' : null);
	return cx.ask('Subject:', { check, ...(initial !== undefined && { initial, isEdited: true }) });
}

export type BodySource = 'text' | 'textFile' | 'htmlFile' | 'markdownFile';

export async function askBody(
	cx: CommandContext,
	source: BodySource,
	initial?: string,
): Promise<Partial<SendOptions>> {
	if (source === 'text') {
		const check = async (text: string) => (text.trim() === '' ? 'a text is needed' : null);
		return { text: await cx.askText('Text:', { check, ...(initial !== undefined && { initial }) }) };
	}
	return { [source]: cx.sources.file(await askPath(cx, 'File:'), flagOf(source)) };
}

export async function askPath(cx: CommandContext, question: string): Promise<string> {
	return (await cx.ask(question, { check: await checkOf('file') })).trim();
}
