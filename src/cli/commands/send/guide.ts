import { parseAddress, parseMailbox } from '../../../api/address.js';
import type { Api } from '../../../api/api.js';
import { NoSenders } from '../../../api/errors.js';
import type { List } from '../../../api/records.js';
import { checkOf } from '../../frame/asking.js';
import { flagOf } from '../../frame/command.js';
import {
	commandsOf,
	type Hint,
	joinHints,
	mailctl,
	type OwnCommand,
	optionWords,
} from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, Declined, UsageError } from '../../frame/errors.js';
import { classify, type ExitCode, exits, hinted } from '../../frame/exit.js';
import type { Choice } from '../../frame/prompts.js';
import { inputName, isStream } from '../../frame/sources.js';
import { counted } from '../../render/units.js';
import { asRecipients, choicesOf } from '../../verbs/choices.js';
import { readMarkdown } from '../../verbs/content.js';
import { walk } from '../../verbs/listing.js';
import { explained } from '../../verbs/refusals.js';
import { isRecordId, orNull, wordOfList } from '../../verbs/resolve.js';
import { withName, withSenderName } from '../../verbs/sender-names.js';
import type { Findings } from './findings.js';
import { fieldsOf, warnOfContent, warnOfLinks, warnOfOwnLinks } from './lint.js';
import { type SendOptions, sendOptions, settled, wantsPreview } from './options.js';
import { type Addressee, addresseeOf, compose, sendTrial, warnOfMissing } from './preview.js';
import { hasBody, isMadeElsewhere, isOpaque, type Prepared, prepare } from './request.js';
import { assertAllowed, audienceOf, withNamed } from './stage.js';
import { fixedTime } from './timing.js';
import { assertCanDeliver } from './watch.js';

interface Guided {
	options: SendOptions;
	/** The test mail, as the end says it; null: none was sent. */
	tried: string | null;
}

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
	const guided: Guided = { options: given, tried: null };
	let count: number | null = null;
	// No answer helps where nothing can be sent.
	if (!isLookedAt(cx, given)) await assertCanDeliver(cx, settled(given, { isDryRun: cx.dryRun }));
	try {
		if (given.at !== undefined) guided.options = { ...given, at: await fixedTime(cx, given.at) };
		guided.options = await withAudience(cx, guided.options);
		guided.options = { ...guided.options, from: guided.options.from ?? (await askSender(cx)) };
		guided.options = await withContent(cx, guided.options);
		if (!isLookedAt(cx, guided.options)) count = await decide(cx, guided);
		const { options } = guided;
		const done = await send(options);
		if (options !== given) await cx.hint(['the same without questions: ', commandOf(cx, options, count)]);
		return done;
	} catch (error) {
		const { options, tried } = guided;
		const isWorthIt = options !== given && !isTooLittle(options);
		throw leadingBack(error, { command: isWorthIt ? commandOf(cx, options, null) : null, tried });
	}
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
function leadingBack(
	error: unknown,
	{ command, tried }: { command: OwnCommand | null; tried: string | null },
): unknown {
	const { exit, hint } = classify(error);
	const isAboutCampaign = hint !== null && commandsOf(hint).some(([noun]) => noun === 'campaigns');
	const goOn = command === null || isAboutCampaign ? null : command;
	if (error instanceof Declined) {
		const hints: Hint[] = error.hint === null ? [] : [error.hint];
		if (goOn !== null) hints.push(['go on with: ', goOn]);
		return new Declined({
			...(hints.length > 0 && { hint: joinHints(hints) }),
			done: tried ?? error.done,
		});
	}
	if (goOn === null || !unsent.has(exit)) return error;
	return hinted(error, [['once that is mended, go on with: ', goOn]]);
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

/** The only verified sender is taken without a question; among several one is chosen. */
export async function askSender(cx: CommandContext): Promise<string> {
	const { senders } = await cx.api();
	const known: string[] = [];
	let isTold = true;
	try {
		for await (const { from_email } of walk(senders, {}, { signal: cx.signal, limit: 2 }))
			known.push(from_email);
	} catch (error) {
		if (!(error instanceof NoSenders)) throw error;
		isTold = false;
	}
	const [only] = known;
	if (known.length > 1) return cx.search('From:', await choicesOf(cx, 'sender', {}));
	if (only !== undefined) {
		// With its own name, or the one that recipients see on the pages, where this machine has it.
		const named = await withSenderName(cx, only);
		const { local } = await cx.connection();
		const from = named === only ? withName(only, (await local?.settings.get())?.['page_sender_name']) : named;
		await cx.note(`From: ${from}, the only sender`);
		return from;
	}
	const isAddress = await checkOf('address');
	const from = await cx.ask('From:', {
		check: async (text) => (text.trim() === '' ? 'a sender is needed' : isAddress(text)),
	});
	if (isTold) await addSender(cx, senders, from.trim());
	return from;
}

/** Nothing can be sent from another address: a person adds it, or the guide ends before the other questions. */
async function addSender(cx: CommandContext, senders: Api['senders'], from: string): Promise<void> {
	const email = parseMailbox(from)?.address ?? from;
	const hint = mailctl('senders', 'add', email);
	if (cx.dryRun) throw new UsageError(`${email} is no sender yet: nothing can be sent from it`, { hint });
	await cx.agree(`${email} is no sender yet.`, 'Add it?');
	const input = { from_email: email };
	await explained(senders.create(input, { signal: cx.signal }), { input });
	await cx.note(`added the sender ${email}`);
}

const mostNamed = 8;

/** An empty editor does not say the variables of the text. The columns of a table are known later. */
async function sayVariables(
	cx: CommandContext,
	{ list, csv, to, bulk, transactional }: SendOptions,
): Promise<void> {
	const isBulk = bulk || ((list.length > 0 || csv !== undefined) && !transactional);
	const fields = list.length + to.length > 0 ? ((await fieldsOf(cx)) ?? []) : [];
	const named = ['name', 'email', ...fields.slice(0, mostNamed)].map((name) => `#${name}#`);
	const more = fields.length > mostNamed ? ` and ${fields.length - mostNamed} more fields` : '';
	const link = isBulk ? '; #unsubscribe_url# is the link to unsubscribe: put it in' : '';
	await cx.note(`variables: ${named.join(', ')}${more}; #name|friend# has a default${link}`);
}

/** It is not sent, or sent to one address alone: its options say so. */
function isLookedAt(cx: CommandContext, options: SendOptions): boolean {
	return (
		cx.dryRun || wantsPreview(options) || options.previewAs !== undefined || options.testTo !== undefined
	);
}

/** The command of a script that does the same; a campaign wants consent there. */
function commandOf(cx: CommandContext, options: SendOptions, count: number | null): OwnCommand {
	const isAgreed = (options.list.length > 0 || options.csv !== undefined) && count !== null && !cx.dryRun;
	const expectCount = options.expectCount ?? (isAgreed ? count : undefined);
	const words = optionWords(sendOptions, { ...options, expectCount: undefined }, cx);
	return mailctl(
		...['send', ...words, ...(isAgreed ? ['--yes'] : [])],
		...(expectCount === undefined ? [] : ['--expect-count', String(expectCount)]),
	);
}

function askSubject(cx: CommandContext): Promise<string> {
	return cx.ask('Subject:', {
		check: async (text) => (text.trim() === '' ? 'a subject is needed' : null),
	});
}

type BodySource = 'text' | 'textFile' | 'htmlFile' | 'markdownFile';

async function askBody(cx: CommandContext, source: BodySource): Promise<Partial<SendOptions>> {
	if (source !== 'text') return { [source]: cx.sources.file(await askPath(cx, 'File:'), flagOf(source)) };
	const check = async (text: string) => (text.trim() === '' ? 'a text is needed' : null);
	return { text: await cx.askText('Text:', { check }) };
}

async function askPath(cx: CommandContext, question: string): Promise<string> {
	return (await cx.ask(question, { check: await checkOf('file') })).trim();
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
 * The message is shown, and tested as often as wanted, until it is sent on: the number of recipients, null where only staging
 * tells. A no throws `Declined`.
 */
async function decide(cx: CommandContext, guided: Guided): Promise<number | null> {
	const { options } = guided;
	const shown = settled(options, { isDryRun: cx.dryRun });
	const seen = await lookAt(cx, shown);
	await preview(cx, seen, shown);
	const { count, look, findings } = seen;
	const rejected = findings?.rejected ?? 0;
	const people = count === null ? '' : ` to ${counted(count, 'recipient')}`;
	const leaves = rejected === 0 || options.skipInvalid ? '' : `, without ${counted(rejected, 'recipient')}`;
	const steps = [
		...(count === 0 ? [] : [{ name: `send it${people}${leaves}`, value: 'send' }]),
		...(look === null ? [] : [{ name: 'send a test mail to yourself', value: 'test' }]),
		{ name: 'cancel', value: 'cancel' },
	];
	for (;;) {
		const step = await cx.choose('What now?', steps);
		if (step === 'cancel') throw new Declined();
		if (step === 'send') break;
		if (look !== null) guided.tried = (await test(cx, look, shown)) ?? guided.tried;
	}
	if (leaves !== '') guided.options = { ...options, skipInvalid: true };
	// A campaign asks the same once it is staged.
	if (options.to.length > 0) await cx.confirm({ kind: 'mild', what: `send it${people}` });
	return count;
}

async function lookAt(cx: CommandContext, options: SendOptions): Promise<Seen> {
	const [to] = options.to;
	if (to !== undefined) {
		const prepared = await prepare(cx, options);
		const addressee = await addresseeOf(cx, prepared, to);
		return { count: options.to.length, look: { prepared, addressee }, findings: null };
	}
	// A pipe can be read once, which is for the campaign.
	if (options.csv !== undefined && (await isStream(inputName(options.csv))))
		return { count: null, look: null, findings: null };
	const audience = await audienceOf(cx, options);
	try {
		await audience.open(false);
		const { recipients: count, findings, shown: look } = await audience.survey('look');
		return { count, look, findings };
	} finally {
		await audience.close();
	}
}

async function preview(
	cx: CommandContext,
	{ count, look, findings }: Seen,
	{ bulk, skipInvalid }: SendOptions,
): Promise<void> {
	if (look !== null) {
		const prepared = findings === null ? look.prepared : withNamed(look.prepared, findings);
		await show(cx, { ...look, prepared });
		await warnOfContent(cx, prepared);
		await (bulk ? warnOfLinks(cx, { bulk }) : warnOfOwnLinks(cx, prepared));
	}
	await findings?.warn(cx, (count ?? 0) + findings.rejected, skipInvalid);
	if (count === 0) await cx.warn('nobody would receive it');
}

/** Lines of the preview: the question stands below it on the same screen. */
const mostLines = 40;

/** Shows the message as text. Another service renders its messages itself. */
async function show(cx: CommandContext, { prepared, addressee }: Look): Promise<void> {
	if (isOpaque(prepared) || (await isMadeElsewhere(cx))) return;
	const composed = await compose(cx, prepared, addressee);
	const lines = composed.text.trimEnd().split('\n');
	const more = lines.length > mostLines ? [`… ${lines.length - mostLines} more lines`] : [];
	const body = [...lines.slice(0, mostLines), ...more].map((line) => `  ${line}`.trimEnd());
	await cx.note([`Subject: ${composed.subject}`, `To: ${addressee.to}`, '', ...body, '']);
	await warnOfMissing(cx, composed);
}

/** The end of the test message; null after a warning that it was not sent. */
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
		if (cx.signal.aborted || error instanceof Declined || !(error instanceof CliError)) throw error;
		const { exit, message, hint } = classify(error);
		await cx.warn(`the test mail: ${message}`, ...(hint === null ? [] : [hint]));
		return exit === exits.queued ? 'only the test mail is queued' : null;
	}
}
