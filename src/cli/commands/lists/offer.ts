/** A list that is missing where one is wanted: the command that makes it, or, on a terminal, the questions. */
import type { List } from '../../../api/records.js';
import { mailctl, type OwnCommand } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { create } from '../../verbs/changing.js';

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
	const list = await create(cx, {
		what: `create list "${name}"`,
		plan: { create: input },
		input,
		make: (api) => api.lists.create(input, { signal: cx.signal }),
	});
	if (list === null) throw new Error('a dry run offers no list');
	await cx.note(`created the list "${list.name}" (${list.id})`);
	return list;
}
