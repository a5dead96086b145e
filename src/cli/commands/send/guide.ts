/** `send` at a terminal with too little given: asks for the rest, shows the message, and sends a test mail where one is wanted. */

import { parseAddress } from '../../../api/address.js';
import type { List } from '../../../api/records.js';
import { checkOf } from '../../frame/asking.js';
import { flagOf, type OptionSpec, offFlagOf } from '../../frame/command.js';
import { mailctl, type OwnCommand } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { Declined } from '../../frame/errors.js';
import { counted } from '../../render/counted.js';
import { choicesOf } from '../../verbs/choices.js';
import { walk } from '../../verbs/listing.js';
import { resolveList } from '../../verbs/resolve.js';
import { assertAllowed } from './audience.js';
import { assertCanDeliver } from './deliver.js';
import { type SendOptions, sendOptions, settled } from './options.js';
import { addresseeOf, asSubscriber, compose, sendTrial } from './preview.js';
import { isMadeElsewhere, isOpaque, type Prepared, prepare } from './request.js';
import { askSender } from './sender.js';
import { whyNotAt } from './timing.js';

/** True: recipients, a subject or a body are missing. */
export function isTooLittle({ to, list, csv, batch, ...options }: SendOptions): boolean {
	if (batch !== undefined) return false;
	return (to.length === 0 && list.length === 0 && csv === undefined) || lacksContent(options);
}

type Contents = Pick<
	SendOptions,
	'template' | 'subject' | 'text' | 'textFile' | 'html' | 'htmlFile' | 'markdownFile'
>;

function lacksContent(options: Contents): boolean {
	// The first heading of a Markdown file is a subject.
	const hasSubject = options.subject !== undefined || options.markdownFile !== undefined;
	return options.template === undefined && !(hasSubject && hasBody(options));
}

function hasBody({ text, textFile, html, htmlFile, markdownFile }: Contents): boolean {
	return [text, textFile, html, htmlFile, markdownFile].some((body) => body !== undefined);
}

/** Completes the options and calls `send` with them; the command that does the same is printed, however it ends. */
export async function guideSend<T>(
	cx: CommandContext,
	given: SendOptions,
	send: (options: SendOptions) => Promise<T>,
): Promise<T> {
	let options = given;
	let count: number | null = null;
	// Where nothing can be sent every answer would be in vain.
	if (!isLookedAt(cx, given)) await assertCanDeliver(cx, settled(given, { isDryRun: cx.dryRun }));
	try {
		options = await withAudience(cx, options);
		options = { ...options, from: options.from ?? (await askSender(cx)) };
		options = await withContent(cx, options);
		if (!isLookedAt(cx, options)) ({ options, count } = await decide(cx, options));
		return await send(options);
	} finally {
		if (options !== given) await cx.hint(['the same without questions: ', commandOf(options, count)]);
	}
}

async function withAudience(cx: CommandContext, options: SendOptions): Promise<SendOptions> {
	if (options.to.length > 0 || options.list.length > 0 || options.csv !== undefined) return options;
	const { lists } = await cx.api();
	const { count } = await lists.page({ page_size: 1 }, { signal: cx.signal });
	const kind =
		count === 0
			? 'addresses'
			: await cx.choose('To whom?', [
					{ name: 'the subscribers of a list', value: 'list' },
					{ name: 'some addresses', value: 'addresses' },
				]);
	if (kind === 'list')
		return { ...options, list: [await cx.search('Which list:', await choicesOf(cx, 'list', {}))] };
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
	if (!lacksContent(options)) return options;
	const source = hasBody(options)
		? null
		: await cx.choose('What is to be sent?', await sourcesOf(cx, options));
	if (source === 'template')
		return { ...options, template: await cx.search('Which template:', await choicesOf(cx, 'template', {})) };
	if (source === 'markdownFile') return { ...options, ...(await askBody(cx, source)) };
	const check = async (text: string) => (text.trim() === '' ? 'a subject is needed' : null);
	const subject = options.subject ?? (await cx.ask('Subject:', { check }));
	return { ...options, subject, ...(source !== null && (await askBody(cx, source))) };
}

type BodySource = 'text' | 'textFile' | 'htmlFile' | 'markdownFile';

async function sourcesOf(cx: CommandContext, { subject }: SendOptions) {
	const { templates } = (await (await cx.api()).capabilities()).ext;
	const { count } = (await templates?.page({ page_size: 1 }, { signal: cx.signal })) ?? { count: 0 };
	return [
		{ name: 'a text, written in an editor', value: 'text' as const },
		{ name: 'a text from a file', value: 'textFile' as const },
		{ name: 'HTML from a file', value: 'htmlFile' as const },
		{ name: 'Markdown from a file', value: 'markdownFile' as const },
		...(count > 0 && subject === undefined ? [{ name: 'a template', value: 'template' as const }] : []),
	];
}

async function askBody(cx: CommandContext, source: BodySource, initial?: string): Promise<Partial<Contents>> {
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

type Step = 'send' | 'later' | 'test' | 'text' | 'subject' | 'cancel';

/** The message is shown, and shown again after each change, until it is sent on. A no throws `Declined`. */
async function decide(
	cx: CommandContext,
	begun: SendOptions,
): Promise<{ options: SendOptions; count: number | null }> {
	let options = begun;
	const isPlannable = await canPlan(cx, options);
	for (let last: Step | null = null; ; ) {
		const shown = settled(options, { isDryRun: cx.dryRun });
		const prepared = await prepare(cx, shown);
		const { count, addressee } = await audienceOf(cx, prepared, shown);
		if (last !== 'test' && addressee !== null) await preview(cx, prepared, addressee);
		last = await cx.choose(
			'What now?',
			stepsOf(options, { count, isPlannable, isTestable: addressee !== null }),
		);
		if (last === 'send') return { options, count };
		if (last === 'later') return { options: { ...options, at: await askTime(cx) }, count };
		if (last === 'cancel') throw new Declined();
		if (last !== 'test') options = await changed(cx, options, last);
		else if (addressee !== null) await test(cx, { prepared, addressee, options: shown });
	}
}

function stepsOf(
	{ text, subject }: SendOptions,
	{ count, isPlannable, isTestable }: { count: number | null; isPlannable: boolean; isTestable: boolean },
): { name: string; value: Step }[] {
	const steps: { name: string; value: Step; isThere: boolean }[] = [
		{
			name: count === null ? 'send it' : `send it to ${counted(count, 'recipient')}`,
			value: 'send',
			isThere: true,
		},
		{ name: 'send it at a later time', value: 'later', isThere: isPlannable },
		{ name: 'send a test mail to yourself', value: 'test', isThere: isTestable },
		{ name: 'change the text', value: 'text', isThere: text !== undefined },
		{ name: 'change the subject', value: 'subject', isThere: subject !== undefined },
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
	what: 'text' | 'subject',
): Promise<SendOptions> {
	if (what === 'text') return { ...options, ...(await askBody(cx, 'text', options.text)) };
	return { ...options, subject: await cx.ask('Subject:', { initial: options.subject ?? '' }) };
}

type Addressee = Awaited<ReturnType<typeof addresseeOf>>;

/** The recipients as far as they are known before staging, and the first of them; a table is read when it is staged. */
async function audienceOf(
	cx: CommandContext,
	prepared: Prepared,
	options: SendOptions,
): Promise<{ count: number | null; addressee: Addressee | null }> {
	const [to] = options.to;
	if (to !== undefined) return { count: options.to.length, addressee: await addresseeOf(cx, prepared, to) };
	const [text] = options.list;
	if (text === undefined) return { count: null, addressee: null };
	const list = await resolveList(await cx.api(), text, { signal: cx.signal });
	const count = isWholeList(options) ? list.active_subscribers_count : null;
	return { count, addressee: await firstOf(cx, list) };
}

/** Otherwise staging alone counts the recipients. */
function isWholeList({ list, excludeList, where, whereOpened, whereNotOpened }: SendOptions): boolean {
	return (
		list.length === 1 && [excludeList, where, whereOpened, whereNotOpened].every(({ length }) => length === 0)
	);
}

async function firstOf(cx: CommandContext, { id, email_reason }: List): Promise<Addressee | null> {
	const people = (await cx.api()).subscribers(id);
	for await (const one of walk(people, { is_active: true }, { signal: cx.signal, limit: 1 }))
		return asSubscriber(one, email_reason);
	return null;
}

/** What the first recipient gets, as text. A service of others makes its messages by itself. */
async function preview(cx: CommandContext, prepared: Prepared, addressee: Addressee): Promise<void> {
	if (isOpaque(prepared) || (await isMadeElsewhere(cx))) return;
	const { subject, text } = await compose(cx, prepared, addressee);
	const lines = text.trimEnd().split('\n');
	const cut =
		lines.length > mostLines
			? [...lines.slice(0, mostLines), `… ${lines.length - mostLines} more lines`]
			: lines;
	const body = cut.map((line) => `  ${line}`.trimEnd()).join('\n');
	await cx.note(`Subject: ${subject}\nTo: ${addressee.to}\n\n${body}\n`);
}

/** Lines of the preview: the question stands below it on the same screen. */
const mostLines = 40;

async function test(
	cx: CommandContext,
	{ prepared, addressee, options }: { prepared: Prepared; addressee: Addressee; options: SendOptions },
): Promise<void> {
	const own = parseAddress(options.from ?? '')?.address;
	const to = await cx.ask('Your address:', {
		check: await checkOf('address'),
		...(own !== undefined && { initial: own }),
	});
	assertAllowed(cx, [to]);
	await assertCanDeliver(cx, options);
	await sendTrial(cx, { prepared, addressee, to, options });
}

/** The options as words, so that a script can do the same; a list wants consent there. */
function commandOf(options: SendOptions, count: number | null): OwnCommand {
	const words = Object.entries(sendOptions).flatMap(([key, spec]) =>
		wordsOf(key, spec, (options as Readonly<Record<string, unknown>>)[key]),
	);
	const isAgreed = options.list.length > 0 && count !== null && options.expectCount === undefined;
	return mailctl('send', ...words, ...(isAgreed ? ['--yes', '--expect-count', String(count)] : []));
}

function wordsOf(key: string, spec: OptionSpec, value: unknown): string[] {
	const flag = flagOf(key);
	if (value === undefined || value === false)
		return spec.kind === 'tri' && value === false ? [offFlagOf(key, spec)] : [];
	if (value === true) return [flag];
	if (Array.isArray(value)) return value.flatMap((one) => [flag, String(one)]);
	if (typeof value !== 'object' || value === null) return [flag, String(value)];
	if (spec.kind === 'file')
		return [flag, 'path' in value && typeof value.path === 'string' ? value.path : '-'];
	return Object.entries(value).flatMap(([name, text]) => [flag, `${name}=${text}`]);
}
