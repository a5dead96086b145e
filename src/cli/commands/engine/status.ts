import { localTime, offsetText, parseDateTime, withZone } from '../../../api/datetime.js';
import { faultSentence, pausedBy } from '../../../api/pauses.js';
import { type CommandGroup, command } from '../../frame/command.js';
import type { EngineStatus, QueueStats } from '../../frame/connection.js';
import { isForPeople } from '../../frame/globals.js';
import { clean } from '../../render/clean.js';
import { answers, type Columns, column } from '../../render/columns.js';
import type { Times } from '../../render/times.js';
import { counted, numberText, replyText, sizeText } from '../../render/units.js';
import { fitSentences } from '../../render/wrapping.js';
import { senderless } from '../../verbs/refusals.js';
import { sayOutdated } from '../../verbs/retention.js';
import { watched, watchOption } from '../../verbs/watching.js';

const columns: Columns<EngineStatus> = [
	column('path', 'DATABASE'),
	column('schema_version', 'SCHEMA'),
	column('size_bytes', 'BYTES', { isCount: true }),
	column('lists', 'LISTS', { isCount: true }),
	column('subscribers', 'SUBSCRIBERS', { isCount: true }),
	column('suppressions', 'SUPPRESSIONS', { isCount: true }),
	column('messages', 'MESSAGES', { value: ({ messages }) => pairsOf(messages).join(', ') || '0' }),
	column('senders', 'SENDERS', { isCount: true }),
	column('smtp_url', 'MAIL SERVER'),
	column('public_url', 'PUBLIC URL'),
	column('time_zone', 'TIME ZONE'),
	column('paused', 'QUEUE', {
		value: ({ paused }) => withZones(pauseLine(paused)),
		lines: ({ paused }, times) => [withMoments(pauseLine(paused), times)],
	}),
	column('bounce_address', 'BOUNCES', {
		value: ({ bounce_address: address }) =>
			address === null
				? 'go to the sender, because bounce_address is not set'
				: `${address}, with a signed return path for each message`,
	}),
	column('verp', 'VERP', { wide: true }),
	{ key: 'dkim_domains', header: 'SIGNED', value: ({ dkim_domains }) => dkim_domains.join(', ') },
	column('limits', 'LIMITS', { value: ({ limits }) => pairsOf(limits).join('; ') }),
	{
		key: 'webhooks_stopped',
		header: 'STOPPED WEBHOOKS',
		value: (status) => withZones(stoppedOf(status).join('; ')),
		lines: (status, times) => stoppedOf(status).map((line) => withMoments(line, times)),
	},
	{ key: 'size', header: 'DISK USAGE', wide: true, value: sizeOf },
	{ key: 'retention', header: 'RETENTION', wide: true, value: retentionOf },
];

export const status = command({
	name: 'status',
	summary: 'show the contents and the set-up of the database',
	description:
		'`webhooks_stopped` are webhooks whose target answered 410; `webhooks update` or `webhooks replay` ' +
		'starts them again. `size` is the disk usage in bytes, estimated if the database is larger than 128 MiB. `retention.frees` is ' +
		'the space that the next deletion frees, or that keep_messages 400d would free if everything is kept.',
	columns,
	output:
		'{"path", "schema_version", "size_bytes", "lists", "subscribers", "suppressions", "messages", "senders", "smtp_url", "public_url", "time_zone", "paused": {"kind", "reason", "since", "retry_at", "faults"} | null, "bounce_address", "verp", "dkim_domains", "limits": {SETTING: value}, "webhooks_stopped": [{"id", "url", "since"}], "size": {"messages", "events", "bodies", "links", "subscribers", "figures", "other", "free", "is_estimate"}, "retention": {"keep_messages", "keep_events", "keep_bodies", "frees": {"messages", "events", "bodies", "bytes"}}}',
	examples: ['mailctl engine status', 'mailctl engine status -o json'],
	run: async (cx) => cx.out.record(await (await cx.local()).status(), columns),
});

function pairsOf(values: object): string[] {
	return Object.entries(values).map(([name, value]) => `${name} ${value}`);
}

function sizeOf({ size: { is_estimate, ...bytes } }: EngineStatus): string {
	const shown = Object.entries(bytes)
		.filter(([, size]) => size > 0)
		.sort(([, one], [, other]) => other - one)
		.map(([kind, size]) => `${kind} ${sizeText(size)}`);
	return `${is_estimate ? 'about: ' : ''}${shown.join(', ')}`;
}

function retentionOf({ retention: { frees, ...kept } }: EngineStatus): string {
	const set = Object.entries(kept).flatMap(([name, value]) => (value === null ? [] : [`${name} ${value}`]));
	const would = `about ${sizeText(frees.bytes)} (${sayOutdated(frees)})`;
	const nothing = frees.messages + frees.events + frees.bodies === 0;
	if (set.length === 0) return `everything is kept${nothing ? '' : `; 400d would free ${would}`}`;
	return `${set.join(', ')}${nothing ? '' : `; frees ${would}`}`;
}

function stoppedOf({ webhooks_stopped }: EngineStatus): string[] {
	return webhooks_stopped.map(({ id, url, since }) => `${id} ${url} since ${since}`);
}

const stats = command({
	name: 'stats',
	summary: 'show waiting messages, and why they wait',
	description:
		'Shows why nothing is sent, how many messages are due, how many of them a limit delays, the workers, the domains that defer mail, ' +
		'the times of the first and the last message that each limit delays, and the most frequent replies to mails of the last seven days. ' +
		'Leaves out the limits that --rate sets. Reads every waiting message.',
	output:
		'{"paused": {"kind": "manual" | "fault", "reason", "since", "retry_at", "faults"} | null, "messages": {STATE: count}, "due", "held", "oldest", "next_due", "workers": [{"role", "host", "pid", "messages", "heard"}], "deferred": [{"domain", "messages", "next_due", "last_reply"}], "limits": [{"setting", "limit", "domain", "messages", "next", "last"}], "replies": [{"state", "reply", "count"}]}',
	examples: ['mailctl engine queue stats', 'mailctl engine queue stats -o json'],
	options: { watch: watchOption },
	run: (cx, { options }) =>
		watched(cx, options.watch, async (cx) => {
			const found = await (await cx.local()).queue.stats();
			if (!isForPeople(cx)) return void (await cx.out.parts(found));
			const lines = linesOf(found).map((line) => clean(withMoments(line, cx.times)));
			await cx.out.raw(`${await fitSentences(lines.join('\n'), cx.io.stdout)}\n`);
			return undefined;
		}),
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
		const said = resumed ? 'the queue is not paused any more' : 'the queue was not paused';
		await cx.out.document({ resumed }, said);
		const { messages, workers } = await queue.stats();
		const isWaiting = 'queued' in messages || 'deferred' in messages;
		if (isWaiting && workers.length === 0) await cx.hint(await senderless(cx));
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

function linesOf({ due, held, next_due, oldest, limits, ...stats }: QueueStats): string[] {
	const states = Object.entries(stats.messages).map(([state, count]) => `${numberText(count)} ${state}`);
	const back = held === 0 ? '' : ` (limits delay ${held === due ? 'all' : numberText(held)} of them)`;
	const since = oldest === null ? '' : `; oldest waiting message: ${oldest}`;
	const [limited] = limits.map((limit) => limit.next).sort();
	const isHeld = due > 0 && limited !== undefined;
	const next = isHeld ? `${limited}, because of a limit` : (next_due ?? 'no message is waiting');
	const section = (title: string, lines: readonly string[]) =>
		lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
	return [
		pauseLine(stats.paused),
		`messages: ${states.length === 0 ? 'none' : states.join(', ')}`,
		`due now: ${numberText(due)}${back}${since}`,
		`next due: ${due > held ? 'now' : next}`,
		...(stats.workers.length === 0 ? ['no worker is running'] : []),
		...section('workers:', stats.workers.map(workerLine)),
		...section('deferred by:', stats.deferred.map(deferredLine)),
		...section('most frequent replies of the last seven days:', stats.replies.map(replyText)),
		...section('delayed by limits:', limits.map(limitLine)),
	];
}

/** Shows the last heartbeat, because a late heartbeat is the only sign that a process on another machine was killed. */
function workerLine({ role, host, pid, messages, heard }: QueueStats['workers'][number]): string {
	const last = heard === null ? '' : `; last seen at ${heard}`;
	return `${role ?? 'stopped'} ${pid} on ${host}: sending ${counted(messages, 'message')}${last}`;
}

function deferredLine({ domain, messages, next_due, last_reply }: QueueStats['deferred'][number]): string {
	return `${domain}: ${numberText(messages)}, next ${next_due}; ${last_reply ?? 'no reply'}`;
}

function limitLine({ setting, limit, domain, messages, next, last }: QueueStats['limits'][number]): string {
	const of = limit.startsWith('*=') && domain !== null ? ` (${domain})` : '';
	return `${setting} ${limit}${of}: ${numberText(messages)}, next ${next}, last ${last}`;
}

function pauseLine(paused: QueueStats['paused']): string {
	if (paused === null) return 'the queue is not paused';
	const { kind, reason, since, retry_at } = paused;
	if (kind === 'manual')
		return `paused ${pausedBy(reason)} since ${since}${reason === null ? '' : `: ${reason}`}`;
	return `${faultSentence(reason, since)}; the next try is at ${retry_at}`;
}

const wireTime = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}/g;

/** Appends `Z` to each time of the API in the sentence, because programs need the time zone. */
function withZones(sentence: string): string {
	return sentence.replaceAll(wireTime, withZone);
}

/** Formats the API's times in a sentence for people, to the second: `2026-11-21 13:00:07 UTC+1`. */
function withMoments(sentence: string, times: Pick<Times, 'zone'>): string {
	return sentence.replaceAll(wireTime, (time) => {
		const at = parseDateTime(time);
		if (at === null) return time;
		const local = localTime(at, times.zone()).slice(0, 'YYYY-MM-DDTHH:MM:SS'.length).replace('T', ' ');
		return `${local} ${offsetText(at, times.zone())}`;
	});
}
