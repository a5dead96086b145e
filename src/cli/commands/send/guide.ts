/** At a terminal, `send` asks for missing options, shows the message, and prints the command that does the same. */

import { parseAddress } from '../../../api/address.js';
import { NoSenders } from '../../../api/errors.js';
import { checkOf } from '../../frame/asking.js';
import { flagOf } from '../../frame/command.js';
import { joinHints, mailctl, type OwnCommand, optionWords } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, Declined } from '../../frame/errors.js';
import { classify, exits } from '../../frame/exit.js';
import { inputName, isStream } from '../../frame/sources.js';
import { counted } from '../../render/units.js';
import { assertAllowed } from '../../verbs/allowed.js';
import { choicesOf } from '../../verbs/choices.js';
import { readMarkdown } from '../../verbs/content.js';
import { collect, walk } from '../../verbs/listing.js';
import { assertCanDeliver } from './delivery.js';
import { type First, isMadeElsewhere, warnOfLinks, warnOfMissing } from './draft.js';
import { hasBody, type SendOptions, sendOptions, settled, wantsPreview } from './options.js';
import { sendTest } from './preview.js';
import { prepare } from './request.js';
import { sourceOf } from './stage.js';

interface Question {
	isOpen(options: SendOptions): boolean | Promise<boolean>;
	ask(cx: CommandContext, options: SendOptions): Promise<Partial<SendOptions>>;
}

const questions: readonly Question[] = [
	{
		isOpen: ({ to, list, csv }) => to.length === 0 && list.length === 0 && csv === undefined,
		ask: askAudience,
	},
	{ isOpen: ({ from }) => from === undefined, ask: async (cx) => ({ from: await askSender(cx) }) },
	{ isOpen: (options) => options.template === undefined && !hasBody(options), ask: askContent },
	{
		isOpen: async ({ template, subject, markdownFile }) => {
			if (template !== undefined || subject !== undefined) return false;
			// The first heading of a Markdown file is the subject. Do not read stdin here, because the send needs it.
			if (markdownFile === undefined || markdownFile.path === null) return markdownFile === undefined;
			return (await readMarkdown(markdownFile))?.subject === null;
		},
		ask: async (cx) => ({ subject: await cx.ask('Subject:', { check: needed('a subject is needed') }) }),
	},
];

export async function isTooLittle(options: SendOptions): Promise<boolean> {
	if (options.batch !== undefined) return false;
	for (const { isOpen } of questions) if (await isOpen(options)) return true;
	return false;
}

export async function guideSend<T>(
	cx: CommandContext,
	given: SendOptions,
	send: (options: SendOptions) => Promise<T>,
): Promise<T> {
	const isLook = cx.dryRun || wantsPreview(settled(given, cx)) || given.testTo !== undefined;
	if (!isLook) await assertCanDeliver(cx, given);
	let options = given;
	for (const { isOpen, ask } of questions)
		if (await isOpen(options)) options = { ...options, ...(await ask(cx, options)) };
	try {
		const decided = isLook ? { options, count: null } : await decide(cx, options);
		const done = await send(decided.options);
		await cx.hint(['the same without questions: ', commandOf(cx, decided.options, decided.count)]);
		return done;
	} catch (error) {
		if (!(error instanceof Declined)) throw error;
		const next = ['continue with: ', commandOf(cx, options, null)];
		const hint = joinHints(error.hint === null ? [next] : [error.hint, next]);
		throw new Declined({ hint, done: error.done });
	}
}

function commandOf(cx: CommandContext, options: SendOptions, count: number | null): OwnCommand {
	const isAgreed = (options.list.length > 0 || options.csv !== undefined) && count !== null && !cx.dryRun;
	const expectCount = options.expectCount ?? (isAgreed ? count : undefined);
	const words = optionWords(sendOptions, { ...options, expectCount: undefined }, cx);
	return mailctl(
		...['send', ...words, ...(isAgreed ? ['--yes'] : [])],
		...(expectCount === undefined ? [] : ['--expect-count', String(expectCount)]),
	);
}

async function askAudience(cx: CommandContext): Promise<Partial<SendOptions>> {
	const { count } = await (await cx.api()).lists.page({ page_size: 1 }, { signal: cx.signal });
	const kind = await cx.choose('To whom?', [
		...(count === 0 ? [] : [{ name: 'the subscribers of a list', value: 'list' }]),
		{ name: 'some addresses', value: 'addresses' },
		{ name: 'the rows of a table (CSV)', value: 'csv' },
	]);
	if (kind === 'csv') return { csv: await askPath(cx, 'Table:') };
	if (kind === 'list')
		return { list: [await cx.search('Which list:', await choicesOf(cx, 'list', { active: true }))] };
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
	return { to: words(typed) };
}

export async function askSender(cx: CommandContext): Promise<string> {
	const { senders } = await cx.api();
	const known = await collect(walk(senders, {}, { signal: cx.signal, limit: 2 })).catch((error: unknown) => {
		if (error instanceof NoSenders) return [];
		throw error;
	});
	const [only, other] = known;
	if (other !== undefined) return cx.search('From:', await choicesOf(cx, 'sender', {}));
	if (only !== undefined) {
		await cx.note(`From: ${only.from_email}, the only sender`);
		return only.from_email;
	}
	const isAddress = await checkOf('address');
	return cx.ask('From:', {
		check: async (text) => (text.trim() === '' ? 'a sender is needed' : isAddress(text)),
	});
}

async function askContent(cx: CommandContext, options: SendOptions): Promise<Partial<SendOptions>> {
	const { templates } = (await (await cx.api()).capabilities()).ext;
	const hasTemplates = ((await templates?.page({ page_size: 1 }, { signal: cx.signal }))?.count ?? 0) > 0;
	const source = await cx.choose('Content?', [
		{ name: 'a text, written in an editor', value: 'text' },
		{ name: 'a text from a file', value: 'textFile' },
		{ name: 'HTML from a file', value: 'htmlFile' },
		{ name: 'Markdown from a file', value: 'markdownFile' },
		...(hasTemplates && options.subject === undefined
			? ([{ name: 'a template', value: 'template' }] as const)
			: []),
	] as const);
	if (source === 'template')
		return { template: await cx.search('Which template:', await choicesOf(cx, 'template', {})) };
	if (source !== 'text') return { [source]: cx.sources.file(await askPath(cx, 'File:'), flagOf(source)) };
	return { text: await cx.askText('Text:', { check: needed('a text is needed') }) };
}

async function askPath(cx: CommandContext, question: string): Promise<string> {
	return (await cx.ask(question, { check: await checkOf('file') })).trim();
}

function needed(reason: string) {
	return async (text: string) => (text.trim() === '' ? reason : null);
}

async function decide(cx: CommandContext, given: SendOptions) {
	const options = settled(given, cx);
	const seen = await lookAt(cx, options);
	await preview(cx, seen, options);
	const { recipients: count, first, findings } = seen;
	const rejected = findings?.rejected ?? 0;
	const people = count === null ? '' : ` to ${counted(count, 'recipient')}`;
	const leaves =
		rejected === 0 || options.skipInvalid ? '' : `, leaving out ${counted(rejected, 'recipient')}`;
	const steps = [
		...(count === 0 ? [] : [{ name: `send it${people}${leaves}`, value: 'send' }]),
		...(first === null ? [] : [{ name: 'send a test message to yourself', value: 'test' }]),
		{ name: 'cancel', value: 'cancel' },
	];
	let done = 'nothing was changed';
	for (;;) {
		const step = await cx.choose('What now?', steps);
		if (step === 'cancel') throw new Declined({ done });
		if (step === 'send') break;
		if (first !== null && (await test(cx, first, options))) done = 'only the test message was sent';
	}
	// Confirm only a send to `--to` here: a campaign asks for confirmation after staging.
	if (options.to.length > 0) await cx.confirm({ kind: 'mild', what: `send it${people}` });
	return { options: leaves === '' ? given : { ...given, skipInvalid: true }, count };
}

type Seen = Awaited<ReturnType<typeof lookAt>>;

/** `recipients` counts suppressed recipients too. It is null if only staging can count the recipients. */
async function lookAt(cx: CommandContext, options: SendOptions) {
	const [to] = options.to;
	if (to !== undefined) {
		const draft = await prepare(cx, options);
		await draft.warnOfVariables(options.strictVars ?? options.bulk);
		const first = { draft, addressee: await draft.addressee(to) };
		return { recipients: options.to.length, first, findings: null };
	}
	// Do not read a pipe here: it gives its rows only once, and the campaign needs them.
	if (options.csv !== undefined && (await isStream(inputName(options.csv))))
		return { recipients: null, first: null, findings: null };
	const audience = await (await sourceOf(cx, options)).open(false);
	try {
		return await audience.survey('look');
	} finally {
		await audience.close();
	}
}

/** Longer messages are cut, so that the question below them stays on the screen. */
const mostLines = 40;

async function preview(cx: CommandContext, { recipients, first, findings }: Seen, options: SendOptions) {
	await findings?.warn(cx, (recipients ?? 0) + findings.rejected, options.skipInvalid);
	if (recipients === 0) await cx.warn('nobody would receive it');
	if (first === null) return;
	const { draft, addressee } = first;
	await draft.warnOfContent();
	await warnOfLinks(cx, options.bulk);
	if (draft.isOpaque || (await isMadeElsewhere(cx))) return;
	const composed = await draft.compose(addressee);
	const lines = composed.text.trimEnd().split('\n');
	const more = lines.length > mostLines ? [`… ${lines.length - mostLines} more lines`] : [];
	const body = [...lines.slice(0, mostLines), ...more].map((line) => `  ${line}`.trimEnd());
	await cx.note([`Subject: ${composed.subject}`, `To: ${addressee.to}`, '', ...body, '']);
	await warnOfMissing(cx, composed.missing);
}

async function test(cx: CommandContext, first: First, options: SendOptions): Promise<boolean> {
	const own = parseAddress(options.from ?? '')?.address;
	const to = await cx.ask('Your address:', {
		check: await checkOf('address'),
		...(own !== undefined && { initial: own }),
	});
	try {
		assertAllowed(cx, [to]);
		await sendTest(cx, first, to, options);
		return true;
	} catch (error) {
		if (cx.signal.aborted || error instanceof Declined || !(error instanceof CliError)) throw error;
		const { exit, message, hint } = classify(error);
		await cx.warn(`the test message: ${message}`, ...(hint === null ? [] : [hint]));
		return exit === exits.queued;
	}
}
