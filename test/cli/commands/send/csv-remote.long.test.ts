// Campaigns from a table on a mailctl server: lost answers, a stopped server, a token that may only send.
import { afterEach, expect, it } from 'vitest';
import { cli } from '../../../support/cli.js';
import { makeProject } from '../../../support/project.js';
import { startServer } from '../../../support/running-server.js';
import { startSmtpSink } from '../../../support/smtp-sink.js';
import { startTampering, type Tamper } from '../../../support/tampering.js';

const opened: { close(): unknown }[] = [];
afterEach(async () => {
	for (const one of opened.splice(0).reverse()) await one.close();
});

async function serve(tamper: Tamper, count: number) {
	const sink = await startSmtpSink();
	opened.push(sink);
	const project = await makeProject({ smtp: sink.port });
	const server = await startServer(project.db);
	opened.push({ close: () => server.stop() });
	const proxy = await startTampering(server.baseUrl, tamper);
	opened.push(proxy);
	const lines = Array.from({ length: count }, (_, row) => `r${row}@example.com,R${row}\n`);
	const people = await project.file('people.csv', `email,name\n${lines.join('')}`);
	const run = (words: readonly string[], token = server.token) =>
		cli(['--base-url', proxy.baseUrl, ...words], { env: { MAILCTL_TOKEN: token, HOME: project.folder } });
	const send = (...more: string[]) => [
		...['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'Hi #name#', '--csv', people],
		...['--yes', '--expect-count', String(count), '--campaign', 'j', '-o', 'json', ...more],
	];
	return { sink, project, run, send };
}

it('send uploads rows again if the server’s answer is lost, and nobody gets two mails', async () => {
	const puts: string[] = [];
	const { sink, run, send } = await serve(async (passing, ask) => {
		const answered = await ask(passing);
		if (passing.method !== 'PUT') return answered;
		puts.push(passing.path);
		if (puts.length % 2 === 1) throw new Error('the answer is lost');
		return answered;
	}, 2_100);
	const { code, stdout } = await run(send());
	expect([code, JSON.parse(stdout)]).toMatchObject([0, { staged: 2_100, messages: { sent: 2_100 } }]);
	expect(puts.map((path) => path.split('/batches/')[1])).toEqual(['0/', '0/', '2000/', '2000/']);
	expect(new Set(sink.received.flatMap(({ to }) => to)).size).toBe(2_100);
	expect(sink.received).toHaveLength(2_100);
});

it('a campaign continues after the server was unavailable', async () => {
	let isGone = false;
	let puts = 0;
	const { sink, run, send } = await serve(async (passing, ask) => {
		if (passing.method === 'PUT') puts += 1;
		if (puts === 2 && passing.method === 'PUT') isGone = true;
		if (isGone) throw new Error('nobody is there');
		return ask(passing);
	}, 2_100);
	expect((await run(send('--retries', '0'))).code).toBe(6);
	expect(sink.received).toHaveLength(0);
	isGone = false;
	const words = ['campaigns', 'resume', 'j', '--yes', '--expect-count', '2100', '-o', 'json'];
	const { code, stdout } = await run(words);
	expect([code, JSON.parse(stdout)]).toMatchObject([0, { staged: 2_100, messages: { sent: 2_100 } }]);
	expect(puts).toBe(3);
});

it('a campaign needs only a token with the scope send', async () => {
	const { project, run, send } = await serve((passing, ask) => ask(passing), 2);
	const made = (await project.json(['engine', 'tokens', 'create', '--name', 'shop', '--scope', 'send'])) as {
		token: string;
	};
	const { code, stdout } = await run(send('--tag', 'shop'), made.token);
	expect([code, JSON.parse(stdout)]).toMatchObject([0, { messages: { sent: 2 } }]);
	expect((await run(['campaigns', 'get', 'j'], made.token)).code).toBe(0);
});
