import { localTime, offsetText, parseDateTime, withZone } from '../../../api/datetime.js';
import { faultSentence, pausedBy } from '../../../api/pauses.js';
import { type CommandGroup, command } from '../../frame/command.js';
import type { QueueStats } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { isForPeople } from '../../frame/globals.js';
import { clean } from '../../render/clean.js';
import { answers } from '../../render/columns.js';
import type { Times } from '../../render/times.js';
import { counted, numberText, replyText } from '../../render/units.js';
import { fitSentences } from '../../render/wrapping.js';
import { senderless } from '../../verbs/refusals.js';
import { watched, watchOption } from '../../verbs/watching.js';

const stats = command({
	name: 'stats',
	summary: 'show waiting messages, and why they wait',
	description:
		'Shows why nothing is sent, due messages and those that limits delay, workers, domains that defer mail, ' +
		'limits with their next and last time, and the most frequent replies of seven days. Limits of --rate are ' +
		'not included. It reads every waiting message.',
	output:
		'{"paused": {"kind": "manual" | "fault", "reason", "since", "retry_at", "faults"} | null, "messages": {STATE: count}, "due", "held", "oldest", "next_due", "workers": [{"role", "host", "pid", "messages", "heard"}], "deferred": [{"domain", "messages", "next_due", "last_reply"}], "limits": [{"setting", "limit", "domain", "messages", "next", "last"}], "replies": [{"state", "reply", "count"}]}',
	examples: ['mailctl engine queue stats', 'mailctl engine queue stats -o json'],
	options: { watch: watchOption },
	run: (cx, { options }) => watched(cx, options.watch, showStats),
});

const pause = command({
	name: 'pause',
	summary: 'stop sending in all processes',
	description:
		'Every worker stops within seconds: it finishes messages in transit and returns the rest to the queue. ' +
		'New messages are still accepted. `engine queue resume` ends the pause.',
	options: { reason: { kind: 'text', summary: 'store this reason with the pause' } },
	writes: true,
	...answers({ kind: '"manual"', reason: '', since: '', retry_at: 'null', faults: '0' }),
	examples: ['mailctl engine queue pause --reason "the mail server moves"'],
	run: async (cx, { options: { reason } }) => {
		const { queue } = await cx.local();
		if (cx.dryRun) return cx.wouldDo('pause the queue', { pause: 'queue', with: { reason: reason ?? null } });
		await cx.out.document(await queue.pause(reason ?? null), 'the queue is paused');
	},
});

const resume = command({
	name: 'resume',
	summary: 'resume sending, and try the mail server at once',
	writes: true,
	...answers({ resumed: 'true' }, ', or false if the queue was not paused'),
	examples: ['mailctl engine queue resume'],
	run: async (cx) => {
		const { queue } = await cx.local();
		if (cx.dryRun) return cx.wouldDo('resume the queue', { resume: 'queue' });
		const resumed = await queue.resume();
		await cx.out.document(
			{ resumed },
			resumed ? 'the queue is not paused any more' : 'the queue was not paused',
		);
		const { messages, workers } = await queue.stats();
		if (
			workers.length === 0 &&
			Object.keys(messages).some((state) => state === 'queued' || state === 'deferred')
		)
			await cx.hint(await senderless(cx));
	},
});

export const queue: CommandGroup = {
	name: 'queue',
	summary: 'show, pause and resume the queue',
	examples: [
		'mailctl engine queue stats',
		'mailctl engine queue pause --reason "the mail server moves"',
		'mailctl engine queue resume',
	],
	commands: [stats, pause, resume],
};

async function showStats(cx: CommandContext): Promise<undefined> {
	const found = await (await cx.local()).queue.stats();
	if (!isForPeople(cx)) return void (await cx.out.parts(found));
	const lines = linesOf(found).map((line) => clean(withMoments(line, cx.times)));
	await cx.out.raw(`${await fitSentences(lines.join('\n'), cx.io.stdout)}\n`);
}

function linesOf({ due, held, next_due, oldest, limits, ...stats }: QueueStats): string[] {
	const states = Object.entries(stats.messages).map(([state, count]) => `${numberText(count)} ${state}`);
	const back = held === 0 ? '' : ` (limits delay ${held === due ? 'all' : numberText(held)} of them)`;
	const since = oldest === null ? '' : `; the oldest is from ${oldest}`;
	const [limited] = limits.map((limit) => limit.next).sort();
	const isHeld = due > 0 && limited !== undefined;
	const next = isHeld ? `${limited}, when a limit allows it` : (next_due ?? 'no message is waiting');
	const section = (title: string, lines: readonly string[]) =>
		lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
	return [
		pauseLine(stats.paused),
		`messages: ${states.length === 0 ? 'none' : states.join(', ')}`,
		`due now: ${numberText(due)}${back}${since}`,
		`next due: ${due > held ? 'now' : next}`,
		...(stats.workers.length === 0 ? ['no worker is running'] : []),
		...section('workers:', stats.workers.map(workerLine)),
		...section(
			'deferred by:',
			stats.deferred.map(
				({ domain, messages, next_due, last_reply }) =>
					`${domain}: ${numberText(messages)}, next ${next_due}; ${last_reply ?? 'no reply'}`,
			),
		),
		...section('most frequent replies of seven days:', stats.replies.map(replyText)),
		...section('delayed by limits:', limits.map(limitLine)),
	];
}

/** Processes send heartbeats every few seconds. Only a late heartbeat shows that one on another machine was killed. */
function workerLine({ role, host, pid, messages, heard }: QueueStats['workers'][number]): string {
	const last = heard === null ? '' : `; last seen at ${heard}`;
	return `${role ?? 'stopped'} ${pid} on ${host}: sending ${counted(messages, 'message')}${last}`;
}

function limitLine({ setting, limit, domain, messages, next, last }: QueueStats['limits'][number]): string {
	const of = limit.startsWith('*=') && domain !== null ? ` (${domain})` : '';
	return `${setting} ${limit}${of}: ${numberText(messages)}, next ${next}, last ${last}`;
}

export function pauseLine(paused: QueueStats['paused']): string {
	if (paused === null) return 'the queue is not paused';
	const { kind, reason, since, retry_at } = paused;
	if (kind === 'manual')
		return `paused ${pausedBy(reason)} since ${since}${reason === null ? '' : `: ${reason}`}`;
	return `${faultSentence(reason, since)}; the next try is at ${retry_at}`;
}

const wireTime = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}/g;

/** Appends the zone UTC to the API's times in a sentence, for programs. */
export function withZones(sentence: string): string {
	return sentence.replaceAll(wireTime, withZone);
}

/** Writes the API's times in a sentence for people, to the second: `2026-11-21 13:00:07 UTC+1`. */
export function withMoments(sentence: string, times: Pick<Times, 'zone'>): string {
	return sentence.replaceAll(wireTime, (time) => {
		const at = parseDateTime(time);
		if (at === null) return time;
		const local = localTime(at, times.zone()).slice(0, 'YYYY-MM-DDTHH:MM:SS'.length).replace('T', ' ');
		return `${local} ${offsetText(at, times.zone())}`;
	});
}
