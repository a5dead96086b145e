import { command } from '../../frame/command.js';
import type { EngineStatus } from '../../frame/connection.js';
import { type Columns, column } from '../../render/columns.js';
import { sizeText } from '../../render/units.js';
import { sayOutdated } from '../../verbs/retention.js';
import { pauseLine, withMoments, withZones } from './queue.js';

const columns: Columns<EngineStatus> = [
	column('path', 'DATABASE'),
	column('schema_version', 'SCHEMA'),
	column('size_bytes', 'BYTES', { isCount: true }),
	column('lists', 'LISTS', { isCount: true }),
	column('subscribers', 'SUBSCRIBERS', { isCount: true }),
	column('suppressions', 'SUPPRESSIONS', { isCount: true }),
	{
		key: 'messages',
		header: 'MESSAGES',
		value: ({ messages }) =>
			Object.entries(messages)
				.map(([state, count]) => `${state} ${count}`)
				.join(', '),
	},
	column('senders', 'SENDERS', { isCount: true }),
	column('smtp_url', 'MAIL SERVER'),
	column('public_url', 'PUBLIC URL'),
	column('time_zone', 'TIME ZONE'),
	{
		key: 'paused',
		header: 'QUEUE',
		value: ({ paused }) => withZones(pauseLine(paused)),
		lines: ({ paused }, times) => [withMoments(pauseLine(paused), times)],
	},
	{ key: 'bounce_address', header: 'BOUNCES', value: bouncesOf },
	column('verp', 'VERP', { wide: true }),
	{ key: 'dkim_domains', header: 'SIGNED', value: ({ dkim_domains }) => dkim_domains.join(', ') },
	{ key: 'limits', header: 'LIMITS', value: limitsOf },
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
		'`webhooks_stopped` are webhooks whose target answered 410: `webhooks update` or `webhooks replay` ' +
		'starts them again. `size` is the disk usage in bytes, estimated above 128 MiB. `retention.frees` is ' +
		'the space that the next deletion frees, or that 400 days would free.',
	columns,
	output:
		'{"path", "schema_version", "size_bytes", "lists", "subscribers", "suppressions", "messages", "senders", "smtp_url", "public_url", "time_zone", "paused": {"kind", "reason", "since", "retry_at", "faults"} | null, "bounce_address", "verp", "dkim_domains", "limits": {SETTING: value}, "webhooks_stopped": [{"id", "url", "since"}], "size": {"messages", "events", "bodies", "links", "subscribers", "figures", "other", "free", "is_estimate"}, "retention": {"keep_messages", "keep_events", "keep_bodies", "frees": {"messages", "events", "bodies", "bytes"}}}',
	examples: ['mailctl engine status', 'mailctl engine status -o json'],
	run: async (cx) => cx.out.record(await (await cx.local()).status(), columns),
});

function bouncesOf({ bounce_address }: EngineStatus): string {
	if (bounce_address === null) return 'return to the sender: bounce_address is not set';
	return `${bounce_address}, with a signed return path for each message`;
}

function limitsOf({ limits }: EngineStatus): string {
	return Object.entries(limits)
		.map(([setting, value]) => `${setting} ${value}`)
		.join('; ');
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
