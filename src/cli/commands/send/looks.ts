/** The guided `send`: the message as its first recipient gets it, and what speaks against recipients. */

import type { CommandContext } from '../../frame/context.js';
import { type Found, withNamed } from './findings.js';
import { linted, warnOfContent } from './lint.js';
import type { SendOptions } from './options.js';
import { type Addressee, addresseeOf, asSubscriber, compose, warnOfMissing } from './preview.js';
import { isMadeElsewhere, isOpaque, type Prepared } from './request.js';

/** A message to look at: that of the first recipient. */
export interface Look {
	prepared: Prepared;
	addressee: Addressee;
}

/** The recipients before staging, suppressed ones among them; null: they are known afterwards alone. */
export async function audienceOf(
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
		// Standard input can be read once.
		if (options.csv === '-') return { count: null, look: null, found: null };
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
export async function preview(
	cx: CommandContext,
	look: Look | null,
	{ found, options: { skipInvalid } }: { found: Found | null; options: Pick<SendOptions, 'skipInvalid'> },
): Promise<void> {
	const named = look !== null && found !== null ? withNamed(look.prepared, found) : look?.prepared;
	if (look !== null && named !== undefined) await show(cx, { ...look, prepared: named });
	if (found === null || found.findings.rejected === 0) return;
	for (const line of found.findings.lines(found.of)) await cx.warn(skipInvalid ? `left out: ${line}` : line);
	// A name that is no variable's is to be mended.
	const name = found.findings.variables.find((one) => !look?.prepared.named?.includes(one));
	if (name !== undefined && !skipInvalid) await cx.hint(`a default is for those without: #${name}|friend#`);
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
	const body = cut.map((line) => `  ${line}`.trimEnd()).join('\n');
	await cx.note(`Subject: ${subject}\nTo: ${addressee.to}\n\n${body}\n`);
	await warnOfMissing(cx, composed);
	await warnOfContent(cx, prepared);
}

/** Lines of the preview: the question stands below it on the same screen. */
const mostLines = 40;
