/** One message to one address, only where `--send-to` names it. Service document, "Send a message". */
import { ApiError } from '../../../api/errors.js';
import { isRecord } from '../../../api/json.js';
import { pauseSentence } from '../../../api/pauses.js';
import type { LoggedEvent, Message } from '../../../api/records.js';
import { sleep } from '../../../api/sleep.js';
import { isUuid } from '../../verbs/resolve.js';
import { expectRecord, expectRecords, expectRefusal, expectStatus, objectOf } from '../assertions.js';
import { type CheckContext, paths, slot } from '../check-context.js';
import { Broken, type Check, type Probe, Skipped } from '../model.js';
import { fault, integer, type Rule, type Shape, shown, string } from '../shapes.js';

const isTrue: Rule = (value) => (value === true ? null : fault(`is ${shown(value)}, not true`));
const array: Rule = (value) => (Array.isArray(value) ? null : fault(`is ${shown(value)}, not an array`));
const uuid: Rule = (value) =>
	string(value) ?? (isUuid(String(value)) ? null : fault(`is ${shown(value)}, no UUID`));

const resultShape: Shape = { messages: array, result: isTrue, messages_created: integer };
const messageShape: Shape = { to: string, id: uuid };

interface Accepted {
	id: string;
	/** Given by mailctl servers. */
	submission: string | null;
}

/** Milliseconds between two reads of the message's state, and their number: half a minute in all. */
const pollMs = 250;
const maxPolls = 120;

/** Planned only with an address to send to. The last one waits half a minute at most for the message's outcome. */
export function sendChecks(context: CheckContext): Check[] {
	const accepted = slot<Accepted>('send.message');
	const check = (verb: string, title: string, run: (probe: Probe) => Promise<string | undefined>): Check => ({
		id: `send.${verb}`,
		group: 'send',
		title,
		need: 'send',
		run,
	});
	return [
		check('requires-body', 'a message without subject and body is refused', async (probe) => {
			const { to, from } = address(context);
			const answer = await probe.call({ method: 'POST', path: paths.send, body: { from, to: [to] } });
			expectRefusal(probe, answer, { what: 'a message without subject and body', statuses: [400] });
			return undefined;
		}),
		check('message', 'one transactional message is accepted', async (probe) => {
			accepted.set(await sendOne(probe, context));
			return undefined;
		}),
		check('delivered', 'the message is sent', (probe) => deliver(probe, context, accepted.get())),
	];
}

function address({ mail }: CheckContext): { to: string; from: string } {
	if (mail === null) throw new Skipped('no --send-to');
	return mail;
}

async function sendOne(probe: Probe, context: CheckContext): Promise<Accepted> {
	const { to, from } = address(context);
	const text = `Sent by mailctl smoke to see whether mail leaves; run ${context.names.id}.`;
	const subject = `mailctl smoke ${context.names.id}`;
	const body = { type: 'TRANSACTIONAL', from, to: [to], subject, text_body: text };
	const answer = await expectStatus(probe, { method: 'POST', path: paths.send, body }, 200);
	const result = objectOf(probe, answer);
	expectRecord(probe, resultShape, result, 'answer');
	const messages = Array.isArray(result['messages']) ? result['messages'] : [];
	expectRecords(probe, messageShape, messages, 'message');
	if (result['messages_created'] !== messages.length)
		probe.fault(`messages_created is ${shown(result['messages_created'])} with ${messages.length} messages`);
	const [first]: unknown[] = messages;
	if (!isRecord(first)) throw new Broken(`no message was created for ${to}: is the address suppressed?`);
	if (String(first['to']).toLowerCase() !== to.toLowerCase())
		probe.fault(`the message is to ${shown(first['to'])}`);
	return { id: String(first['id']), submission: answer.headers['x-submission-id'] ?? null };
}

/** A database of this machine: this run delivers it. `mailctl serve`: asked for the state. Others: unknown. */
async function deliver(
	probe: Probe,
	context: CheckContext,
	{ id, submission }: Accepted,
): Promise<string | undefined> {
	const { api, local } = await context.connection();
	const { messages } = (await api.capabilities()).ext;
	const call = { signal: context.signal };
	if (messages === undefined) return followEvents(() => api.events(id, call), context.signal);
	if (local !== null) {
		if ((await local.settings.get())['smtp_url'] === undefined)
			throw new Skipped('no mail server is configured; it is queued');
		if (submission === null) throw new Skipped('the answer names no submission; it is queued');
		const scope = { submission };
		const { kind, reason } = await local.deliver({ scope, until: 'settled', signal: context.signal });
		if (kind === 'paused') throw new Broken(pauseSentence(reason));
		return conclude(probe, await messages.get(id, call));
	}
	for (let poll = 0; poll < maxPolls; poll += 1) {
		const message = await messages.get(id, call);
		if (!isOnItsWay(message)) return conclude(probe, message);
		const paused = submission === null ? null : (await messages.progress({ submission }, call)).paused;
		if (paused !== null) throw new Broken(`the service sends nothing at the moment: ${paused}`);
		await sleep(pollMs, context.signal);
	}
	throw new Broken(`the message is not on its way after ${(maxPolls * pollMs) / 1000} s`);
}

/** A deployment of others may tell the events of a message. */
async function followEvents(
	read: () => Promise<LoggedEvent[]>,
	signal: AbortSignal,
): Promise<string | undefined> {
	for (let poll = 0; poll < maxPolls; poll += 1) {
		const events = await read().catch((error: unknown) => {
			if (error instanceof ApiError && error.code === 'not_found')
				throw new Skipped('the deployment does not tell what becomes of a message');
			throw error;
		});
		const types = events.map(({ type }) => type);
		if (types.includes('SENT')) return undefined;
		const bounce = types.find((type) => type === 'HARDBOUNCED' || type === 'SOFTBOUNCED');
		if (bounce !== undefined) throw new Broken(`the message is ${bounce}`);
		await sleep(pollMs, signal);
	}
	throw new Broken(`the message is not sent after ${(maxPolls * pollMs) / 1000} s`);
}

function isOnItsWay({ state }: Message): boolean {
	return state === 'staged' || state === 'queued' || state === 'leased';
}

function conclude(probe: Probe, { state, last_reply: reply }: Message): string | undefined {
	if (state !== 'sent') probe.fault(`the message is ${state}: ${reply ?? 'no reply'}`);
	return reply ?? undefined;
}
