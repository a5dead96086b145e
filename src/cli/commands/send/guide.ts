/** `send` at a terminal with too little given: asks for the rest, shows the message, and sends a test mail where one is wanted. */

import type { List } from '../../../api/records.js';
import { checkOf } from '../../frame/asking.js';
import {
	commandsOf,
	type Hint,
	joinHints,
	mailctl,
	type OwnCommand,
	optionWords,
} from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { Declined } from '../../frame/errors.js';
import { classify, type ExitCode, exits, hinted } from '../../frame/exit.js';
import type { Choice } from '../../frame/prompts.js';
import { asRecipients, choicesOf } from '../../verbs/choices.js';
import { readMarkdown } from '../../verbs/content.js';
import { isRecordId, orNull, wordOfList } from '../../verbs/resolve.js';
import { assertCanDeliver } from './deliver.js';
import { type SendOptions, sendOptions, settled } from './options.js';
import { askBody, askPath, askSender, askSubject, type BodySource, sayVariables } from './questions.js';
import { hasBody } from './request.js';
import { decide, type Guided } from './review.js';
import { fixedTime } from './timing.js';

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
	const guided: Guided = { options: given, files: {}, tried: null };
	let count: number | null = null;
	// Where nothing can be sent every answer would be in vain.
	if (!isLookedAt(cx, given)) {
		await assertCanDeliver(cx, settled(given, { isDryRun: cx.dryRun }));
		await sayPaused(cx);
	}
	try {
		if (given.at !== undefined) guided.options = { ...given, at: await fixedTime(cx, given.at) };
		guided.options = await withAudience(cx, guided.options);
		guided.options = { ...guided.options, from: guided.options.from ?? (await askSender(cx)) };
		guided.options = await withContent(cx, guided.options);
		if (!isLookedAt(cx, guided.options)) count = await decide(cx, guided);
		const { options } = guided;
		const done = await send({ ...options, ...guided.files });
		if (options !== given) await cx.hint(['the same without questions: ', commandOf(cx, options, count)]);
		return done;
	} catch (error) {
		const { options, tried } = guided;
		const isWorthIt = options !== given && !isTooLittle(options);
		const command = isWorthIt ? commandOf(cx, options, null) : null;
		if (error instanceof Declined) throw left(error, { command, tried });
		throw command === null ? error : leadingBack(error, command);
	}
}

/** A mail that waits is no surprise then. */
async function sayPaused(cx: CommandContext): Promise<void> {
	const { local } = await cx.connection();
	const { paused } = (await local?.status()) ?? { paused: null };
	if (paused?.kind !== 'manual') return;
	await cx.warn('the queue is paused: what is sent now waits', mailctl('engine', 'queue', 'resume'));
}

/** `tried`: what was sent before, as the end says it. */
function left(
	{ hint, done }: Declined,
	{ command, tried }: { command: OwnCommand | null; tried: string | null },
): Declined {
	const hints: Hint[] = hint === null ? [] : [hint];
	if (command !== null && !isAboutCampaign(hint)) hints.push(['go on with: ', command]);
	return new Declined({
		...(hints.length > 0 && { hint: joinHints(hints) }),
		done: tried ?? done,
	});
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
	if (!unsent.has(exit) || isAboutCampaign(hint)) return error;
	return hinted(error, [['once that is mended, go on with: ', command]]);
}

function isAboutCampaign(hint: Hint | null): boolean {
	return hint !== null && commandsOf(hint).some(([noun]) => noun === 'campaigns');
}

async function withAudience(cx: CommandContext, options: SendOptions): Promise<SendOptions> {
	if (options.to.length > 0 || options.list.length > 0 || options.csv !== undefined) return options;
	const { lists } = await cx.api();
	const { count, results } = await lists.page({ page_size: 100 }, { signal: cx.signal });
	const only = count === 1 ? (results[0] ?? null) : null;
	const isWithoutReaders =
		count === results.length && results.every((list) => list.active_subscribers_count === 0);
	const some = { name: 'the subscribers of a list', ...(isWithoutReaders && { disabled: '(0 active)' }) };
	const kind = await cx.choose(
		'To whom?',
		[
			...(count === 0 ? [] : [{ ...(only === null ? some : theList(only)), value: 'list' }]),
			{ name: 'some addresses', value: 'addresses' },
			{ name: 'the rows of a table (CSV)', value: 'csv' },
		],
		isWithoutReaders ? 'addresses' : 'list',
	);
	if (kind === 'csv') return { ...options, csv: await askPath(cx, 'Table:') };
	if (kind === 'list') {
		const search = async () => cx.search('Which list:', await choicesOf(cx, 'list', { active: true }));
		return { ...options, list: [await namedList(cx, only === null ? await search() : only)] };
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

function theList(list: List): Omit<Choice<never>, 'value'> {
	const { name, ...rest } = asRecipients(list);
	return { ...rest, name: `the list ${name}` };
}

/** As the printed command has it. `chosen`: its id, or what was typed in place of one. */
async function namedList(cx: CommandContext, chosen: string | List): Promise<string> {
	const api = await cx.api();
	if (typeof chosen !== 'string') return wordOfList(api, chosen, cx.signal);
	if (!isRecordId(chosen)) return chosen;
	const list = await orNull(api.lists.get(Number(chosen), { signal: cx.signal }));
	return list === null ? chosen : wordOfList(api, list, cx.signal);
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
	if (source === 'text') await sayVariables(cx, options);
	return { ...options, subject, ...(source !== null && (await askBody(cx, source))) };
}

/** The first heading of a Markdown file is the subject, where it has one. */
async function withHeading(cx: CommandContext, options: SendOptions): Promise<SendOptions> {
	const { markdownFile, subject } = options;
	if (subject !== undefined || markdownFile === undefined || markdownFile.path === null) return options;
	const { subject: heading } = (await readMarkdown(markdownFile)) ?? { subject: null };
	return heading === null ? { ...options, subject: await askSubject(cx) } : options;
}

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

/** It is not sent, or sent to one address alone: that is what its options say. */
function isLookedAt(cx: CommandContext, { preview, previewAs, eml, testTo }: SendOptions): boolean {
	return cx.dryRun || [preview, previewAs, eml, testTo].some((look) => look !== undefined);
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
