import { rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { domainOf, emailKey, isEmailAddress } from '../../api/address.js';
import { formatDateTime } from '../../api/datetime.js';
import { codeOf, systemReason } from '../../api/errors.js';
import { makeFolders } from '../../jobs/folders.js';
import type { SinkMail } from '../connect/mail-sink.js';
import { command, flagOf } from '../frame/command.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, UsageError } from '../frame/errors.js';
import { exits } from '../frame/exit.js';
import { clean } from '../render/clean.js';
import { type Columns, column } from '../render/columns.js';
import { counted } from '../render/units.js';
import { noAddress } from '../verbs/address-faults.js';
import { cannotListen, Inbox, portOption, showArrivals } from '../verbs/inbox.js';

interface Arrived {
	time: string;
	from: string;
	to: readonly string[];
	subject: string | null;
	message_id: string | null;
	bytes: number;
	file: string | null;
}

const columns: Columns<Arrived> = [
	column('time', 'TIME', { time: 'text', wide: true }),
	column('from', 'FROM'),
	{ key: 'to', header: 'TO', isName: true, isWhole: true, value: ({ to }) => to.join(', ') },
	column('subject', 'SUBJECT'),
	column('bytes', 'BYTES', { align: 'right', isCount: true }),
	column('message_id', 'MESSAGE-ID', { wide: true }),
	column('file', 'FILE', { wide: true }),
];

const sink = command({
	name: 'sink',
	summary: 'run a local mail server that shows the mail it receives',
	description:
		'Accepts mail from any sender to any recipient with any login, and delivers none. --refuse answers 550 5.1.1, and ' +
		'--defer answers 451 4.3.0; the sink does not count these mails. The sink has no TLS: to send to it with a login, ' +
		'use smtp://USER@127.0.0.1:2525?tls=never.',
	options: {
		host: { kind: 'text', default: '127.0.0.1', summary: 'listen on this address (0.0.0.0 for all)' },
		port: { ...portOption, default: 2525, summary: 'listen on this port (0 for a free one)' },
		dir: { kind: 'path', placeholder: 'DIR', summary: 'write each mail to this folder as an .eml file' },
		refuse: { kind: 'list', placeholder: 'ADDRESS', summary: 'refuse mail for this address or @DOMAIN' },
		defer: { kind: 'list', placeholder: 'ADDRESS', summary: 'defer mail to this address or @DOMAIN' },
		count: { kind: 'integer', min: 1, summary: 'end with exit code 0 after this many mails' },
		wait: {
			kind: 'duration',
			summary: 'end after this time; exit 12 if fewer mails than --count (default 1) arrived',
		},
	},
	examples: [
		'mailctl sink',
		'mailctl sink --port 2525 --dir ./mails --count 10 --wait 1m -o json',
		'mailctl sink --refuse bob@example.com --defer @slow.example',
		'mailctl engine init --smtp smtp://127.0.0.1:2525',
	],
	output: 'an array of {"time", "from", "to", "subject", "message_id", "bytes", "file"}',
	exits: [12, 74, 130],
	columns,
	reach: [],
	needsNoTarget: true,
	async run(cx, { options }) {
		const { host, port, count, wait, dir = null, refuse, defer } = options;
		const refusal = refusalsOf(options);
		const own = { host, dir, count, refuse, defer };
		if (cx.dryRun) return cx.wouldDo('listen for mails', { listen: port, with: own });
		if (dir !== null) await makeFolder(dir);
		const inbox = new Inbox<Arrived>(cx, { most: count, wait });
		const { startMailSink } = await import('../connect/mail-sink.js');
		const server = await startMailSink({
			...{ host, port, take: receiver(cx, inbox, dir) },
			refusal: (to) => {
				const kind = refusal(to);
				if (kind !== null) void cx.note(`${replies[kind].said} ${to}`);
				return kind && replies[kind];
			},
		}).catch((cause: unknown) => Promise.reject(cannotListen(cause, { host, port })));
		try {
			const url = `smtp://${host.includes(':') ? `[${host}]` : host}:${server.port}`;
			await cx.note(`listening on ${url}`);
			await showArrivals(cx, inbox, { columns, lineOf });
		} finally {
			await server.close();
		}
		if (cx.signal.aborted) throw cx.signal.reason;
		const expected = count ?? 1;
		if (inbox.count >= expected) return exits.done;
		const came =
			inbox.count === 0 ? 'no mail arrived' : `${inbox.count} of ${counted(expected, 'mail')} arrived`;
		throw new CliError('nothing_received', exits.outOfTime, `${came} within --wait`, { retryable: true });
	},
});

export { sink as command };

async function makeFolder(dir: string): Promise<void> {
	const there = await stat(dir).catch(() => null);
	if (there !== null && !there.isDirectory()) throw new UsageError(`--dir ${dir} is not a folder`);
	try {
		if (there === null) makeFolders(dir);
	} catch (cause) {
		throw new UsageError(`cannot write to --dir ${dir}: ${systemReason(cause)}`, { cause });
	}
}

const replies = {
	refuse: { code: 550, text: '5.1.1 No such mailbox here', said: 'refused' },
	defer: { code: 451, text: '4.3.0 Not now, try again later', said: 'deferred' },
} as const;
type Reply = keyof typeof replies;

function refusalsOf(named: Readonly<Record<Reply, readonly string[]>>): (to: string) => Reply | null {
	const known = new Map<string, Reply>();
	for (const kind of ['refuse', 'defer'] as const)
		for (const text of named[kind]) known.set(keyOf(text, kind), kind);
	return (to) => known.get(emailKey(to)) ?? known.get(`@${domainOf(to)}`) ?? null;
}

function keyOf(text: string, kind: Reply): string {
	if (text.startsWith('@') && isEmailAddress(`any${text}`)) return `@${domainOf(text)}`;
	if (!isEmailAddress(text))
		throw new UsageError(`${flagOf(kind)}: ${noAddress(text)}; it is not @DOMAIN either`);
	return emailKey(text);
}

function receiver(cx: CommandContext, inbox: Inbox<Arrived>, dir: string | null) {
	let number = 0;
	return async ({ from, to, raw }: SinkMail): Promise<void> => {
		number += 1;
		const time = formatDateTime(cx.clock.now());
		const { default: PostalMime } = await import('postal-mime');
		const end = raw.indexOf('\r\n\r\n');
		const header = end === -1 ? raw : raw.subarray(0, end + 4);
		const { subject = null, messageId: message_id = null } = await PostalMime.parse(header);
		const keeping = dir === null ? null : keep(dir, number, { time, to, raw });
		keeping?.catch((error: unknown) => inbox.fail(error));
		const file = await keeping;
		if (inbox.add({ time, from, to, subject, message_id, bytes: raw.length, file })) return;
		if (file !== null) await rm(file);
		throw new Error('the sink is closing');
	};
}

type Kept = Pick<Arrived, 'time' | 'to'> & Pick<SinkMail, 'raw'>;

/** Names sort by time: `2026-11-22T093015Z-0001-ann@example.com.eml`. Writes each file completely or not at all. */
async function keep(dir: string, number: number, { time, to, raw }: Kept): Promise<string> {
	const moment = `${time.slice(0, 19).replaceAll(':', '')}Z`;
	const recipient = (to[0] ?? '').replaceAll(/[^\w.@+-]/g, '_').slice(0, 100);
	const file = join(dir, `${moment}-${String(number).padStart(4, '0')}-${recipient}.eml`);
	try {
		await writeFile(`${file}.part`, raw, { flag: 'wx', mode: 0o600 });
		await rename(`${file}.part`, file);
		return file;
	} catch (cause) {
		const why = codeOf(cause) || String(cause);
		throw new CliError('disk', exits.disk, `cannot write a mail to ${dir}: ${why}`, { cause });
	}
}

function lineOf({ from, to, subject, bytes, file }: Arrived): string {
	const who = `${from === '' ? '<>' : from} → ${to.join(', ')}`;
	const parts = [who, subject ?? '(no subject)', counted(bytes, 'byte'), ...(file === null ? [] : [file])];
	return clean(parts.join('  '));
}
