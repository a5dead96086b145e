import { parseMailbox } from '../../api/address.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';

export function isLimited(cx: CommandContext): boolean {
	return cx.settings.profile.allowRecipients !== undefined;
}

export function assertAllowed(cx: CommandContext, addresses: readonly string[]): void {
	const { allowRecipients } = cx.settings.profile;
	if (allowRecipients === undefined) return;
	const patterns = allowRecipients.map(toExpression);
	const refused = addresses.find((text) => {
		const address = parseMailbox(text)?.address ?? text;
		return !patterns.some((pattern) => pattern.test(address));
	});
	if (refused === undefined) return;
	throw new UsageError(`this profile may not send to ${refused}; nothing was sent`, {
		hint: `the profile permits only ${allowRecipients.join(', ')} (config key allowRecipients)`,
	});
}

/** `*` matches any text without `@`. The case does not matter. */
function toExpression(glob: string): RegExp {
	const parts = glob.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
	return new RegExp(`^${parts.join('[^@]*')}$`, 'i');
}
