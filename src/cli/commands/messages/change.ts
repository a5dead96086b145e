/** `messages cancel` and `messages retry`: what a person decides about single messages. */
import { createInterface } from 'node:readline';
import { type Messages, need } from '../../../api/capabilities.js';
import type { Message } from '../../../api/records.js';
import { command } from '../../command.js';
import type { CommandContext } from '../../context.js';
import { exits } from '../../exit.js';
import { eachOf } from '../../several.js';
import { existing, messageColumns, uuidOf } from './shown.js';

type Action = 'cancel' | 'retry';

const example = '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f';
/** More of them are a severe change: the count has to be typed. */
const severeMessages = 100;

export const cancel = command({
	...shared('cancel'),
	summary: 'no longer send messages that wait',
	description:
		'Staged, queued and deferred messages are canceled. What is under way, final, or may have been sent already is refused.',
	severity: 'mild',
	examples: [`mailctl messages cancel ${example} --yes`],
	run: (cx, { args }) => change(cx, 'cancel', args.id),
});

export const retry = command({
	...shared('retry'),
	summary: 'try messages now: deferred and uncertain ones',
	description:
		'A deferred message is due at once, with the attempts it has had. An uncertain one, whose answer was lost after it was handed over, goes back to the queue, and may arrive twice; only a person can decide that. What failed or bounced is final: send it anew.',
	examples: [`mailctl messages retry ${example}`],
	run: (cx, { args }) => change(cx, 'retry', args.id),
});

function shared(name: Action) {
	return {
		name,
		args: [{ name: 'id', summary: 'UUIDs of messages; - reads them from stdin', many: true }],
		writes: true,
		columns: messageColumns,
		output: 'an array of the changed messages',
		exits: [3, 5, 9],
	} as const;
}

/** All are found before any is changed; each once, however often it was named. */
async function change(cx: CommandContext, action: Action, texts: readonly string[]) {
	const messages = await need(await cx.api(), 'messages');
	const found = await findAll(cx, messages, texts);
	const ids = found.map(({ id }) => id);
	if (cx.dryRun) {
		await cx.wouldDo(`${action} ${describe(found)}`, { [action]: ids });
		return exits.done;
	}
	await agree(cx, action, found);
	const changed: Message[] = [];
	const { failed } = await eachOf(cx, found, async ({ id }) => {
		changed.push(await messages[action](id, { signal: cx.signal }));
	});
	await cx.out.rows(changed, messageColumns, { all: true });
	return failed === 0 ? exits.done : exits.partly;
}

/** A script that names the count has agreed, few as they are today. */
async function agree(cx: CommandContext, action: Action, found: readonly Message[]): Promise<void> {
	const what = `${action} ${describe(found)}`;
	if (found.length > severeMessages || cx.globals.confirm !== undefined)
		await cx.confirm({ kind: 'severe', what, name: String(found.length) });
	else if (action === 'cancel') await cx.confirm({ kind: 'mild', what });
}

async function findAll(cx: CommandContext, messages: Messages, texts: readonly string[]): Promise<Message[]> {
	const found = new Map<string, Message>();
	for await (const text of names(cx, texts)) {
		const id = uuidOf(text, 'a message');
		if (!found.has(id)) found.set(id, await existing(messages.get(id, { signal: cx.signal }), id));
	}
	return [...found.values()];
}

async function* names(cx: CommandContext, texts: readonly string[]): AsyncGenerator<string> {
	for (const text of texts) {
		if (text !== '-') {
			yield text;
			continue;
		}
		const input = cx.sources.stdin('-');
		for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
			if (line.trim() !== '') yield line.trim();
		}
	}
}

function describe(found: readonly Message[]): string {
	const [only] = found;
	return found.length === 1 && only !== undefined ? `the message to ${only.to}` : `${found.length} messages`;
}
