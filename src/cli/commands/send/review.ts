/** The guided `send`: the message of its first recipient, and its next step: tested, sent. */

import { parseAddress } from '../../../api/address.js';
import { checkOf } from '../../frame/asking.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, Declined } from '../../frame/errors.js';
import { classify, exits } from '../../frame/exit.js';
import { inputName, isStream } from '../../frame/sources.js';
import { counted } from '../../render/units.js';
import type { Findings } from './findings.js';
import { warnOfContent, warnOfLinks, warnOfOwnLinks } from './lint.js';
import { type SendOptions, settled } from './options.js';
import { type Addressee, addresseeOf, compose, sendTrial, warnOfMissing } from './preview.js';
import { isMadeElsewhere, isOpaque, type Prepared, prepare } from './request.js';
import { assertAllowed, audienceOf, withNamed } from './stage.js';
import { assertCanDeliver } from './watch.js';

export interface Guided {
	options: SendOptions;
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
 * The message is shown, and tested as often as wanted, until it is sent on: the number of recipients, null where only staging
 * tells. A no throws `Declined`.
 */
export async function decide(cx: CommandContext, guided: Guided): Promise<number | null> {
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
	if (count === 0) await cx.warn('there is no recipient to send it to');
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
		if (cx.signal.aborted || error instanceof Declined || !(error instanceof CliError)) throw error;
		const { exit, message, hint } = classify(error);
		await cx.warn(`the test mail: ${message}`, ...(hint === null ? [] : [hint]));
		return exit === exits.queued ? 'only the test mail is queued' : null;
	}
}
