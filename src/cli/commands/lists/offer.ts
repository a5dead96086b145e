/** A list that is missing where one is wanted: the command that makes it, or, on a terminal, the questions. */
import type { List } from '../../../api/records.js';
import { mailctl, type OwnCommand } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { maybeCreated } from '../../verbs/changing.js';
import { explained } from '../../verbs/refusals.js';

export const askReason = 'Why do its subscribers get mail? (#email_reason# in mails):';

export function creating(name: string, reason = 'TEXT'): OwnCommand {
	return mailctl('lists', 'create', '--name', name, '--email-reason', reason);
}

/** Makes the list of this name once a person agrees; `isNew`: who chose the name has. Throws as prompts do. */
export async function offerList(
	cx: CommandContext,
	name: string,
	{ isNew }: { isNew: boolean },
): Promise<List> {
	if (!isNew) await cx.agree(`There is no list "${name}".`, 'Create it?');
	const email_reason = await cx.ask(askReason, {
		check: async (text) => (text.trim() === '' ? 'a value is needed' : null),
	});
	const input = { name, email_reason };
	const api = await cx.api();
	const list = await maybeCreated(explained(api.lists.create(input, { signal: cx.signal }), { input }), {
		what: `the list "${name}"`,
		look: mailctl('lists', 'list', '--match', name),
		isUnique: false,
	});
	await cx.note(`created the list "${list.name}" (${list.id})`);
	return list;
}
