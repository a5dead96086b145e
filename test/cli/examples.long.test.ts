import { generateKeyPairSync } from 'node:crypto';
import { chmod, cp, mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Command, type CommandGroup, isCommand, loadNode } from '../../src/cli/frame/command.js';
import { Interrupted } from '../../src/cli/frame/errors.js';
import { tree } from '../../src/cli/tree.js';
import { makeCertificates } from '../support/certificates.js';
import { cli } from '../support/cli.js';
import { moment } from '../support/golden/program.js';
import { blockOf, expectGolden } from '../support/golden/record.js';
import { createSettler } from '../support/golden/settled.js';
import { parseShellLine } from '../support/golden/shell-line.js';
import { makeProject } from '../support/project.js';
import { type RunningServer, startServer } from '../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';
import { type NotifiedTarget, startTarget } from '../support/target.js';

const examples = (await Promise.all(tree.map(async (entry) => examplesOf(await loadNode(entry))))).flat();

/** Creates a released campaign that is not sent yet. */
const november = [
	...['send', '--from', 'news@example.com', '--list', '12', '--subject', 'S', '--text', 'T', '--no-wait'],
	...['--yes', '--expect-count', '250', '--campaign', 'november'],
];
/** Creates a second campaign with the same mail. */
const december = [...november, '--again'].map((word) => (word === 'november' ? 'december' : word));

const before: Readonly<Record<string, readonly string[][]>> = {
	'mailctl senders add news@example.com': [['senders', 'remove', 'news@example.com', '-y']],
	'mailctl fields create --variable city --name City': [['fields', 'delete', 'city', '--confirm', 'city']],
	'mailctl subscribers create -l 12 --email ann@example.com --name Ann --meta city=Oslo': [
		['subscribers', 'delete', 'ann@example.com', '-l', '12', '-y'],
	],
	'mailctl templates create --name Welcome --html-file welcome.html': [
		['templates', 'delete', 'Welcome', '-y'],
	],
	'mailctl templates pull mails': [['templates', 'push', 'mails']],
	'mailctl suppressions remove ann@example.com --yes': [['suppressions', 'add', 'ann@example.com']],
	'mailctl suppressions remove bob@example.com --reason HARDBOUNCED --yes': [
		['suppressions', 'add', 'bob@example.com', '--reason', 'HARDBOUNCED'],
	],
	'mailctl engine dkim remove --domain example.com --selector s1 --yes': [
		['engine', 'dkim', 'add', '--domain', 'example.com', '--selector', 's1', '--type', 'ed25519'],
	],
	'mailctl serve --port 8080 --bounce-smtp 127.0.0.1:2526': [
		['engine', 'settings', 'set', 'bounce_address', 'bounces@example.com'],
	],
	'mailctl engine tokens revoke shop --yes': [['engine', 'tokens', 'create', '--name', 'shop']],
	'mailctl config get output': [['config', 'set', 'output', 'json']],
	'mailctl config unset timeout': [['config', 'set', 'timeout', '1m']],
	'mailctl webhooks test 3': [
		['engine', 'settings', 'set', 'allow_private_webhooks', 'true'],
		['webhooks', 'update', '3', '--url', '{target}'],
	],
	'mailctl webhooks listen --register --test --once': [
		['engine', 'settings', 'set', 'allow_private_webhooks', 'true'],
	],
	'mailctl webhooks listen --register --type HARDBOUNCED --once --wait 2m -o json': [
		['engine', 'settings', 'set', 'allow_private_webhooks', 'true'],
	],
	'mailctl --db restored.db engine restore latest.db': [['engine', 'backup', 'latest.db']],
	'mailctl engine restore latest.db --confirm restore': [['engine', 'backup', 'latest.db']],
	'mailctl engine migrate --from postgres://mailctl@db.example.com/mail --to back.db --dry-run': [
		['engine', 'migrate', '--from', 'news.db', '--to', 'postgres://mailctl@db.example.com/mail', '--yes'],
	],
	'mailctl diff -f mail.yaml': [['apply', '-f', 'mail.yaml']],
	'mailctl diff -f mail.yaml --prune -o json': [
		['apply', '-f', 'mail.yaml', '--prune', '--confirm', 'prune'],
	],
	'mailctl campaigns get november': [november],
	'mailctl campaigns get november -o json': [november],
	'mailctl campaigns resume november': [november],
	'mailctl campaigns resume november --failed': [november],
	'mailctl campaigns resume november --results november.csv': [november],
	'mailctl campaigns report november': [november],
	'mailctl campaigns report november --human -o json': [november],
	'mailctl campaigns links november': [november],
	'mailctl campaigns compare november december': [november, december],
	'mailctl campaigns compare november december -o json': [november, december],
	'mailctl campaigns links november -o csv': [november],
	'mailctl campaigns results november': [november],
	'mailctl campaigns results november --only bounced --save bounced-november.csv': [november],
	'mailctl campaigns cancel november --yes': [november],
	'mailctl campaigns cancel november --dry-run': [november],
	'mailctl logout --profile prod': [['profile', 'add', 'prod', '--base-url', 'https://mail.example.com']],
	'mailctl profile rename prod production': [['profile', 'add', 'prod', '--db', 'news.db']],
	'mailctl profile remove prod --yes': [['profile', 'add', 'prod', '--db', 'news.db']],
};

const files: Readonly<Record<string, string>> = {
	'people.csv': 'email,name,city\nzoe@example.com,Zoe,Oslo\n',
	'bounced.csv': 'email\nzoe@example.com\n',
	'suppressions.csv': 'email,reason,source,date_created,expires_at\nzoe@example.com,MANUAL,API,,\n',
	'mail.yaml':
		'lists:\n  - name: Weekly news\n    email_reason: You signed up\nfields:\n  - {variable: city, name: City}\nsenders: [news@example.com]\n',
	'mails/Welcome/body.html': '<p>Welcome to us, #name#</p>',
	'welcome.html': '<p>Welcome, #name#</p>',
	'invoice.pdf': '%PDF-1.4\n',
	'news.html': '<p>News for #name#</p><p><a href="#unsubscribe_url#">Unsubscribe</a></p>',
	'news.md': '# News\n\nNews for #name#. [Unsubscribe](#unsubscribe_url#)\n',
	'smtp.pass': 'secret\n',
	'mailctl.key': `${'0f'.repeat(32)}\n`,
	'ca.pem': (await makeCertificates(['DNS:mail.example.com'])).ca,
	'dkim.pem': generateKeyPairSync('rsa', { modulusLength: 2048 })
		.privateKey.export({ format: 'pem', type: 'pkcs8' })
		.toString(),
	'bounce.eml':
		'From: MAILER-DAEMON@mx.example.net\nSubject: failure notice\n\n<ann@example.com>:\n550 5.1.1 no such user\n',
	'ids.txt': Array.from({ length: 250 }, (_, at) => `${at + 1}\n`).join(''),
};

const unrecorded = ['mailctl doctor', 'mailctl commands -o json'];

const ownFiles: Readonly<Record<string, string>> = {
	"mailctl subscribers import people.csv --list 12 --map 'Town=city' --create-fields":
		'email,Town,Plan\nzoe@example.com,Oslo,pro\n',
	"mailctl subscribers import people.csv --list 12 --map 'First+Last=name'":
		'email,First,Last\nzoe@example.com,Zoe,Lund\n',
	"mailctl subscribers import people.csv --list 12 --map Status=state --state-words 'blocked=unsubscribed'":
		'email,Status\nzoe@example.com,blocked\n',
};

describe('the examples in the help', () => {
	let sink: SmtpSink;
	let template: string;
	let message: string;
	let target: NotifiedTarget;
	let deployment: RunningServer;
	/** Placeholders for host names in the golden. */
	let names: Record<string, string>;
	const home = process.cwd();
	const record: string[] = [];
	const settle = createSettler();
	const here = (word: string) =>
		word
			.replace('0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f', message)
			.replace('{target}', target.url)
			.replace(/^https:\/\/mail\.example\.com$/, deployment.baseUrl)
			.replace(/^postgres:.*/, 'server.db')
			.replace(/^8080$/, '0')
			.replace(/^127\.0\.0\.1:2526$/, '127.0.0.1:0')
			.replace(/^2525$/, '0');

	beforeAll(async () => {
		sink = await startSmtpSink();
		const project = await makeProject({ smtp: sink.port, env: { SOURCE_DATE_EPOCH: moment } });
		const { folder, json } = project;
		target = await startTarget(204);
		deployment = await startServer((await makeProject()).db);
		await project.file('token.txt', `${deployment.token}\n`);
		const { cert, key } = await makeCertificates(['IP:127.0.0.1']);
		await project.file('cert.pem', cert);
		await project.file('key.pem', key);
		for (let at = 1; at <= 13; at += 1)
			await json([
				'lists',
				'create',
				'--name',
				at === 12 ? 'Monthly news' : `List ${at}`,
				'--email-reason',
				'r',
			]);
		await json(['fields', 'create', '--variable', 'city', '--name', 'City']);
		const rows = Array.from({ length: 249 }, (_, at) => `p${at}@example.com,P${at}`);
		const people = await project.file('first.csv', ['email,name', 'ann@example.com,Ann', ...rows].join('\n'));
		await json(['subscribers', 'import', people, '-l', '12']);
		await mkdir(join(folder, 'mails', 'Welcome'), { recursive: true });
		for (const [name, content] of Object.entries(files)) await project.file(name, content);
		// The file must be readable by others for the recorded warning, whatever the umask is.
		await chmod(join(folder, 'mailctl.key'), 0o644);
		await json(['templates', 'create', '--name', 'Welcome', '--html-file', join(folder, 'welcome.html')]);
		for (let at = 1; at <= 3; at += 1)
			await json(['webhooks', 'create', '--url', 'https://hooks.example.com/in', '--type', 'OPENED']);
		const words = [
			'send',
			'--from',
			'news@example.com',
			'--to',
			'ann@example.com',
			'--subject',
			'S',
			'--text',
			'T',
		];
		const answer = (await json([...words, '--no-wait'])) as { messages: { id: string }[] };
		message = answer.messages[0]?.id ?? '';
		names = {
			smtp: `127.0.0.1:${sink.port}`,
			target: new URL(target.url).host,
			deployment: new URL(deployment.baseUrl).host,
		};
		template = folder;
	});
	afterAll(async () => {
		process.chdir(home);
		await Promise.all([sink.close(), target.close(), deployment.stop()]);
	});

	it.each(examples)('run: %s', async (example) => {
		const folder = await mkdtemp(join(tmpdir(), 'mailctl-example-'));
		await cp(template, folder, { recursive: true });
		if (ownFiles[example] !== undefined) await writeFile(join(folder, 'people.csv'), ownFiles[example]);
		process.chdir(folder);
		const env = { HOME: folder, MAILCTL_DB: join(folder, 'news.db'), SOURCE_DATE_EPOCH: moment };
		for (const argv of before[example] ?? [])
			expect(await cli(argv.map(here), { env })).toMatchObject({ code: 0 });

		const line = parseShellLine(example);
		const stop = new AbortController();
		const isEndless = line.argv[0] === 'worker' && !line.argv.includes('--drain');
		const sent = sink.received.length;
		// The default port may be in use.
		const listens = ['sink', 'serve'].includes(line.argv[0] ?? '') && !line.argv.includes('--port');
		const own = [...(listens ? ['--port', '0'] : []), ...(example === 'mailctl doctor' ? ['--offline'] : [])];
		const running = cli([...line.argv, ...own].map(here), {
			env: { ...env, ...line.env },
			interrupts: stop.signal,
			heard: (text) => {
				if (text.includes('listening on')) stop.abort(new Interrupted('SIGINT'));
			},
			...(line.input !== null && { stdin: await readFile(line.input) }),
		});
		if (isEndless) void sink.until(sent + 1).then(() => stop.abort(new Interrupted('SIGINT')));
		const { code, stdout, stderr } = await running;
		if (!unrecorded.includes(example))
			record.push(settle(blockOf(example, { code, stdout, stderr }), { folder, ...names }));
		// `sink` and `listen` are interrupted before they finish; `serve` and `worker` have exit code 0.
		if (line.argv[0] === 'sink' || line.argv[1] === 'listen')
			return expect({ code, stderr }).toMatchObject({ code: 130 });
		expect({ code, errors: /^error:.*/m.exec(stderr)?.[0] }).toEqual({ code: 0, errors: undefined });
	});

	it('print the output that is recorded in the golden file', async () => {
		await expectGolden('examples.txt', record.join('\n'));
	});

	it('exist for every command', async () => {
		const without = (await Promise.all(tree.map(loadNode)))
			.flatMap(commandsOf)
			.filter((one) => (one.examples ?? []).length === 0 && one.hidden !== true)
			.map((one) => one.name);
		expect(without).toEqual([]);
	});

	it('of a group are two or three of the examples of its commands', async () => {
		const groups = (await Promise.all(tree.map(loadNode))).flatMap(groupsOf);
		for (const group of groups.filter(({ self }) => self === undefined)) {
			const { name, examples: shown = [] } = group;
			expect({ name, isFew: shown.length === 2 || shown.length === 3 }).toEqual({ name, isFew: true });
			expect(examplesOf(group)).toEqual(expect.arrayContaining([...shown]));
		}
	});
});

function groupsOf(node: Command | CommandGroup): CommandGroup[] {
	return isCommand(node) ? [] : [node, ...node.commands.flatMap(groupsOf)];
}

function commandsOf(node: Command | CommandGroup): Command[] {
	if (isCommand(node)) return [node];
	return [...(node.self === undefined ? [] : [node.self]), ...node.commands.flatMap(commandsOf)];
}

function examplesOf(node: Command | CommandGroup): string[] {
	return commandsOf(node).flatMap(({ examples: lines }) => [...(lines ?? [])]);
}
