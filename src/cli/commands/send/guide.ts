/** `send` at a terminal with too little given: asks for the rest, shows the message, and sends a test mail where one is wanted. */

import { parseAddress } from '../../../api/address.js';
import { checkOf } from '../../frame/asking.js';
import { flagOf } from '../../frame/command.js';
import { commandsOf, mailctl, type OwnCommand, optionWords } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { Declined } from '../../frame/errors.js';
import { classify, type ExitCode, exits, hinted } from '../../frame/exit.js';
import type { Choice } from '../../frame/questions.js';
import { counted } from '../../render/counted.js';
import { choicesOf, withSize } from '../../verbs/choices.js';
import { readMarkdown } from '../../verbs/markdown.js';
import { assertAllowed } from './audience.js';
import { assertCanDeliver } from './deliver.js';
import { audienceOf, type Look, preview } from './looks.js';
import { type SendOptions, sendOptions, settled } from './options.js';
import { sendTrial } from './preview.js';
import { hasBody, prepare } from './request.js';
import { askSender } from './sender.js';
import { whyNotAt } from './timing.js';

/** True: recipients, the sender, a subject or a body are missing. */
export function isTooLittle(options: SendOptions): boolean {
	const { to, list, csv, batch, from } = options;
	if (batch !== undefined) return false;
	const hasAudience = to.length > 0 || list.length > 0 || csv !== undefined;
	return !hasAudience || from === undefined || lacksContent(options);
}

function lacksContent(options: SendOptions): boolean {
	// The first heading of a Markdown file is a subject.
	const hasSubject = options.subject !== undefined || options.markdownFile !== undefined;
	return options.template === undefined && !(hasSubject && hasBody(options));
}

/** Completes the options and calls `send` with them; the command that does the same is printed once it is done. */
export async function guideSend<T>(
	cx: CommandContext,
	given: SendOptions,
	send: (options: SendOptions) => Promise<T>,
): Promise<T> {
	const guided: Guided = { options: given, hasTried: false };
	let count: number | null = null;
	// Where nothing can be sent every answer would be in vain.
	if (!isLookedAt(cx, given)) await assertCanDeliver(cx, settled(given, { isDryRun: cx.dryRun }));
	try {
		guided.options = await withAudience(cx, guided.options);
		guided.options = { ...guided.options, from: guided.options.from ?? (await askSender(cx)) };
		guided.options = await withContent(cx, guided.options);
		if (!isLookedAt(cx, guided.options)) count = await decide(cx, guided);
		const { options } = guided;
		const done = await send(options);
		if (options !== given) await cx.hint(['the same without questions: ', commandOf(cx, options, count)]);
		return done;
	} catch (error) {
		const { options, hasTried } = guided;
		const isWorthIt = options !== given && !isTooLittle(options);
		const command = isWorthIt ? commandOf(cx, options, null) : null;
		if (error instanceof Declined)
			throw new Declined({
				...(command !== null && { hint: ['go on with: ', command] }),
				...(hasTried && { done: 'only the test mail was sent' }),
			});
		throw command === null ? error : leadingBack(error, command);
	}
}

/** How far the questions are. */
interface Guided {
	options: SendOptions;
	/** A test mail was sent. */
	hasTried: boolean;
}

/** Ends after which nothing of it is on its way, so that the same command may follow. */
const unsent: ReadonlySet<ExitCode> = new Set([
	exits.usage,
	exits.notFound,
	exits.authentication,
	exits.refused,
	exits.network,
	exits.server,
]);

/** The answers are not lost: the end names the command that has them, unless it says how to go on with a campaign. */
function leadingBack(error: unknown, command: OwnCommand): unknown {
	const { exit, hint } = classify(error);
	const isCampaign = hint !== null && commandsOf(hint).some(([noun]) => noun === 'campaigns');
	if (!unsent.has(exit) || isCampaign) return error;
	return hinted(error, [['once that is mended, go on with: ', command]]);
}

async function withAudience(cx: CommandContext, options: SendOptions): Promise<SendOptions> {
	if (options.to.length > 0 || options.list.length > 0 || options.csv !== undefined) return options;
	const { lists } = await cx.api();
	const { count, results } = await lists.page({ page_size: 1 }, { signal: cx.signal });
	const only = count === 1 ? (results[0] ?? null) : null;
	const kind =
		count === 0
			? 'addresses'
			: await cx.choose('To whom?', [
					{ name: `the subscribers of ${only === null ? 'a list' : withSize(only)}`, value: 'list' },
					{ name: 'some addresses', value: 'addresses' },
				]);
	if (kind === 'list') {
		const search = async () => cx.search('Which list:', await choicesOf(cx, 'list', {}));
		return { ...options, list: [only === null ? await search() : String(only.id)] };
	}
	const isAddress = await checkOf('address');
	const words = (text: string) => text.split(/[\s,;]+/).filter((word) => word !== '');
	const typed = await cx.ask('Addresses:', {
		check: async (text) => {
			for (const word of words(text)) {
				const reason = await isAddress(word);
				if (reason !== null) return reason;
			}
			return words(text).length === 0 ? 'an address is needed' : null;
		},
	});
	return { ...options, to: words(typed) };
}

async function withContent(cx: CommandContext, options: SendOptions): Promise<SendOptions> {
	if (!lacksContent(options)) return withHeading(cx, options);
	const source = hasBody(options)
		? null
		: await cx.choose('What is to be sent?', await sourcesOf(cx, options));
	if (source !== null && typeof source === 'object') {
		const search = async () => cx.search('Which template:', await choicesOf(cx, 'template', {}));
		return { ...options, template: source.template ?? (await search()) };
	}
	if (source === 'markdownFile') return withHeading(cx, { ...options, ...(await askBody(cx, source)) });
	const subject = options.subject ?? (await askSubject(cx));
	return { ...options, subject, ...(source !== null && (await askBody(cx, source))) };
}

/** The first heading of a Markdown file is the subject, where it has one. */
async function withHeading(cx: CommandContext, options: SendOptions): Promise<SendOptions> {
	const { markdownFile, subject } = options;
	if (subject !== undefined || markdownFile === undefined || markdownFile.path === null) return options;
	const { subject: heading } = (await readMarkdown(markdownFile)) ?? { subject: null };
	return heading === null ? { ...options, subject: await askSubject(cx) } : options;
}

function askSubject(cx: CommandContext, initial?: string): Promise<string> {
	const check = async (text: string) => (text.trim() === '' ? 'a subject is needed' : null);
	return cx.ask('Subject:', { check, ...(initial !== undefined && { initial }) });
}

type BodySource = 'text' | 'textFile' | 'htmlFile' | 'markdownFile';

/** `template`: the only one; null: one of several is to be chosen. */
type Source = BodySource | { template: string | null };

async function sourcesOf(cx: CommandContext, { subject }: SendOptions): Promise<Choice<Source>[]> {
	const { templates } = (await (await cx.api()).capabilities()).ext;
	const page = await templates?.page({ page_size: 1 }, { signal: cx.signal });
	const { count, results } = page ?? { count: 0, results: [] };
	const only = count === 1 ? (results[0] ?? null) : null;
	const template = {
		name: only === null ? 'a template' : `the template ${only.name}`,
		value: { template: only?.id ?? null },
	};
	return [
		{ name: 'a text, written in an editor', value: 'text' },
		{ name: 'a text from a file', value: 'textFile' },
		{ name: 'HTML from a file', value: 'htmlFile' },
		{ name: 'Markdown from a file', value: 'markdownFile' },
		...(count > 0 && subject === undefined ? [template] : []),
	];
}

async function askBody(
	cx: CommandContext,
	source: BodySource,
	initial?: string,
): Promise<Partial<SendOptions>> {
	if (source === 'text') {
		const check = async (text: string) => (text.trim() === '' ? 'a text is needed' : null);
		return { text: await cx.askText('Text:', { check, ...(initial !== undefined && { initial }) }) };
	}
	const path = (await cx.ask('File:', { check: await checkOf('file') })).trim();
	return { [source]: cx.sources.file(path, flagOf(source)) };
}

/** It is not sent, or sent to one address alone: that is what its options say. */
function isLookedAt(cx: CommandContext, { preview, previewAs, eml, testTo }: SendOptions): boolean {
	return cx.dryRun || [preview, previewAs, eml, testTo].some((look) => look !== undefined);
}

type Step = 'send' | 'later' | 'test' | 'skip' | 'text' | 'file' | 'subject' | 'cancel';

/**
 * The message is shown, and shown again after each change, until it is sent on: the number of recipients, null where only
 * staging tells. A no throws `Declined`.
 */
async function decide(cx: CommandContext, guided: Guided): Promise<number | null> {
	const isPlannable = await canPlan(cx, guided.options);
	for (let last: Step | null = null; ; ) {
		const { options } = guided;
		const shown = settled(options, { isDryRun: cx.dryRun });
		const prepared = await prepare(cx, shown);
		const { count, look, found } = await audienceOf(cx, prepared, shown);
		if (last !== 'test') await preview(cx, look, { found, options });
		const isTestable = look !== null;
		const rejected = options.skipInvalid ? 0 : (found?.findings.rejected ?? 0);
		last = await cx.choose('What now?', stepsOf(options, { count, isPlannable, isTestable, rejected }));
		if (last === 'send') return count;
		if (last === 'cancel') throw new Declined();
		if (last === 'later') {
			guided.options = { ...options, at: await askTime(cx) };
			return count;
		}
		if (last !== 'test') guided.options = await changed(cx, options, last);
		else if (look !== null) {
			await test(cx, look, shown);
			guided.hasTried = true;
		}
	}
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
	const file = [textFile, htmlFile, markdownFile].find((one) => one !== undefined && one.path !== null);
	const isAllowed = rejected === 0;
	const others = count === null ? 'the others' : counted(count, 'other', 'others');
	const steps: { name: string; value: Step; isThere: boolean }[] = [
		{
			name: count === null ? 'send it' : `send it to ${counted(count, 'recipient')}`,
			value: 'send',
			isThere: isAllowed,
		},
		{ name: 'send it at a later time', value: 'later', isThere: isPlannable && isAllowed },
		{ name: 'send a test mail to yourself', value: 'test', isThere: isTestable },
		{ name: 'change the text', value: 'text', isThere: text !== undefined },
		{ name: `read ${file?.name} again`, value: 'file', isThere: file !== undefined },
		{ name: 'change the subject', value: 'subject', isThere: subject !== undefined },
		{
			name: `leave out ${counted(rejected, 'recipient')} and go on with ${others}`,
			value: 'skip',
			isThere: !isAllowed && count !== 0,
		},
		{ name: 'cancel', value: 'cancel', isThere: true },
	];
	return steps.filter(({ isThere }) => isThere);
}

/** A campaign without a time, where the service keeps times. */
async function canPlan(cx: CommandContext, { to, at, in: wait, window }: SendOptions): Promise<boolean> {
	if (to.length > 0 || [at, wait, window].some((time) => time !== undefined)) return false;
	return (await (await cx.api()).capabilities()).ext.audiences !== undefined;
}

async function askTime(cx: CommandContext): Promise<string> {
	const when = 'When, by the clock of the database (2026-12-01 09:00, tomorrow 9:00):';
	const check = async (text: string) => (text.trim() === '' ? 'a time is needed' : whyNotAt(cx, text.trim()));
	return (await cx.ask(when, { check })).trim();
}

async function changed(
	cx: CommandContext,
	options: SendOptions,
	what: 'skip' | 'text' | 'file' | 'subject',
): Promise<SendOptions> {
	// Each look reads it.
	if (what === 'file') return options;
	if (what === 'skip') return { ...options, skipInvalid: true };
	if (what === 'text') return { ...options, ...(await askBody(cx, 'text', options.text)) };
	return { ...options, subject: await askSubject(cx, options.subject) };
}

async function test(cx: CommandContext, look: Look, options: SendOptions): Promise<void> {
	const own = parseAddress(options.from ?? '')?.address;
	const to = await cx.ask('Your address:', {
		check: await checkOf('address'),
		...(own !== undefined && { initial: own }),
	});
	assertAllowed(cx, [to]);
	await assertCanDeliver(cx, options);
	await sendTrial(cx, { ...look, to, options });
}

/** What a script does the same by; a campaign wants consent there. */
function commandOf(cx: CommandContext, options: SendOptions, count: number | null): OwnCommand {
	const isCampaign = options.list.length > 0 || options.csv !== undefined;
	const isAgreed = isCampaign && count !== null && !cx.dryRun;
	const expectCount = options.expectCount ?? (isAgreed ? count : undefined);
	const words = optionWords(sendOptions, { ...options, expectCount: undefined }, cx);
	return mailctl(
		...['send', ...words, ...(isAgreed ? ['--yes'] : [])],
		...(expectCount === undefined ? [] : ['--expect-count', String(expectCount)]),
	);
}
