/** Which checks a run makes, in which order. */
import { UsageError } from '../frame/errors.js';
import type { CheckContext } from './check-context.js';
import { authChecks, connectionChecks } from './checks/connection.js';
import { fieldChecks } from './checks/fields.js';
import { listChecks } from './checks/lists.js';
import { reportChecks } from './checks/report.js';
import { sendChecks } from './checks/send.js';
import { subscriberChecks } from './checks/subscribers.js';
import { webhookChecks } from './checks/webhooks.js';
import { type Check, type Group, groups } from './model.js';

export interface Selection {
	/** Makes and changes things too. */
	full: boolean;
	/** Sends a message. */
	sends: boolean;
	/** Empty: all. */
	only: readonly Group[];
	skip: readonly Group[];
}

/** All other checks need these two, so they run even when their groups are not selected. */
const preconditions = new Set(['connection.reachable', 'auth.token']);

export interface Planned {
	check: Check;
	/** False: a precondition that was not selected; reported only when it does not pass. */
	isAsked: boolean;
}

/** Throws `UsageError` when nothing is left to check. */
export function planChecks(context: CheckContext, selection: Selection): Planned[] {
	const isWanted = (group: Group) =>
		(selection.only.length === 0 || selection.only.includes(group)) && !selection.skip.includes(group);
	if (selection.only.includes('send') && !selection.sends)
		throw new UsageError('--only send sends a message: it needs --send-to and --from');
	const asked = groups.filter((group) => isWanted(group) && (group !== 'send' || selection.sends));
	if (asked.length === 0)
		throw new UsageError('--only and --skip leave nothing to check', {
			hint: `groups: ${groups.join(', ')}`,
		});
	return allChecks(context)
		.filter(({ need }) => isPossible(need, selection))
		.flatMap((check) => {
			const isAsked = asked.includes(check.group);
			return isAsked || preconditions.has(check.id) ? [{ check, isAsked }] : [];
		});
}

/** The two alone, for a clean-up that needs to know whether the deployment answers. */
export function planPreconditions(context: CheckContext): Planned[] {
	return allChecks(context).flatMap((check) =>
		preconditions.has(check.id) ? [{ check, isAsked: false }] : [],
	);
}

function isPossible(need: Check['need'], { full, sends }: Selection): boolean {
	switch (need) {
		case 'read':
			return true;
		case 'change':
			return full;
		case 'send':
			return sends;
		case 'call':
			return full && sends;
	}
}

function allChecks(context: CheckContext): Check[] {
	return [
		...connectionChecks(context),
		...authChecks(context),
		...listChecks(context),
		...subscriberChecks(context),
		...fieldChecks(context),
		...webhookChecks(context),
		...reportChecks(),
		...sendChecks(context),
	];
}
