/** A profile's `allowRecipients`: whom it may write to at all, checked before anything leaves. */
import { parseMailbox } from '../../../api/address.js';
import type { List } from '../../../api/records.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { walk } from '../../walk.js';

/** Throws `UsageError` naming the first address that no pattern covers. Without patterns everybody is allowed. */
export function assertAllowed(cx: CommandContext, addresses: readonly string[]): void {
	const patterns = patternsOf(cx);
	const refused = patterns === null ? undefined : addresses.find((address) => !isAllowed(patterns, address));
	if (refused !== undefined) throw notAllowed(cx, refused);
}

/** The same for the active subscribers of a list. */
export async function assertListAllowed(cx: CommandContext, list: List): Promise<void> {
	const patterns = patternsOf(cx);
	if (patterns === null) return;
	const api = await cx.api();
	for await (const { email } of walk(api.subscribers(list.id), { is_active: true }, { signal: cx.signal })) {
		if (!isAllowed(patterns, email)) throw notAllowed(cx, email);
	}
}

function patternsOf(cx: CommandContext): RegExp[] | null {
	return cx.settings.profile.allowRecipients?.map(toExpression) ?? null;
}

/** `*` stands for anything within a part of the address; case does not count. */
function toExpression(glob: string): RegExp {
	const parts = glob.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
	return new RegExp(`^${parts.join('[^@]*')}$`, 'i');
}

function isAllowed(patterns: readonly RegExp[], text: string): boolean {
	const address = parseMailbox(text)?.address ?? text;
	return patterns.some((pattern) => pattern.test(address));
}

function notAllowed(cx: CommandContext, address: string): UsageError {
	return new UsageError(`this profile may not write to ${address}; nothing was sent`, {
		hint: `allowRecipients: ${cx.settings.profile.allowRecipients?.join(', ')}`,
	});
}
