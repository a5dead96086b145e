/**
 * What a dry run of `send --list` finds without staging anything: whoever has no value for a variable, found by reading
 * the list in pages. Suppressions are looked up only where people are staged.
 */
import type { List, Subscriber } from '../../../api/records.js';
import { checkSubscriber, type Wanted } from '../../../jobs/foreign/mailings/rows.js';
import type { CommandContext } from '../../context.js';
import { walk } from '../../walk.js';
import { missingVariable } from './findings.js';
import { contentOf, isOpaque, type Prepared } from './request.js';
import { openVariables } from './variables.js';

/** `first`: who can be sent to; null: nobody. `lines`: the first findings; `lacksValues`: of all of them. */
export interface ListSurvey {
	recipients: number;
	rejected: number;
	first: Subscriber | null;
	lines: string[];
	lacksValues: boolean;
}

/** The variables whose values differ between the people of a list; empty too where only the service knows. */
export function variablesOfPeople(prepared: Prepared): string[] {
	if (isOpaque(prepared)) return [];
	return openVariables(contentOf(prepared), prepared.request.context ?? {});
}

/** Reads every active subscriber. `most`: findings to keep. */
export async function surveyList(
	cx: CommandContext,
	list: List,
	{ used, most }: { used: readonly string[]; most: number },
): Promise<ListSurvey> {
	const api = await cx.api();
	const found: ListSurvey = { recipients: 0, rejected: 0, first: null, lines: [], lacksValues: false };
	// What is shared was left out of `used` before.
	const wanted: Wanted = { used, shared: {}, isStrict: true };
	const people = walk(api.subscribers(list.id), { is_active: true }, { signal: cx.signal });
	for await (const person of people) {
		const { item } = checkSubscriber(person, list.email_reason, wanted);
		if ('code' in item) {
			found.rejected += 1;
			found.lacksValues ||= item.code === missingVariable;
			if (found.lines.length < most) found.lines.push(item.error);
			continue;
		}
		found.recipients += 1;
		found.first ??= person;
	}
	return found;
}
