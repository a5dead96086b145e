// `mailctl serve`: what happens to a mail that its worker sent is told to whoever asked for it, signed.

import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import PostalMime from 'postal-mime';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Notification } from '../../src/api/notifications.js';
import { webhookTypes } from '../../src/api/records.js';
import { eventually } from '../support/eventually.js';
import { makeProject, type Project } from '../support/project.js';
import { type RunningServer, startServer } from '../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

let sink: SmtpSink;
let project: Project;
let server: RunningServer;
let target: Server;
const calls: { headers: IncomingHttpHeaders; body: string }[] = [];

beforeEach(async () => {
	sink = await startSmtpSink({
		onRcptTo: ({ address }, _session, callback) => {
			const refusal = Object.assign(new Error('5.1.1 no such user'), { responseCode: 550 });
			callback(address.startsWith('gone@') ? refusal : null);
		},
	});
	calls.length = 0;
	target = createServer(async (request, response) => {
		let body = '';
		for await (const chunk of request) body += String(chunk);
		calls.push({ headers: request.headers, body });
		response.writeHead(204).end();
	});
	await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
	project = await makeProject({ smtp: sink.port });
	server = await startServer(project.db);
	await project.json(['engine', 'settings', 'set', 'public_url', server.baseUrl]);
	await project.json(['engine', 'settings', 'set', 'allow_private_webhooks', 'true']);
	const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/in`;
	for (const type of webhookTypes) await project.json(['webhooks', 'create', '--url', url, '--type', type]);
});
afterEach(async () => {
	await server.stop();
	target.closeAllConnections();
	target.close();
	await sink.close();
});

it('a campaign is opened, clicked, left and refused, and each is told once', async () => {
	await project.json(['lists', 'create', '--name', 'People', '--email-reason', 'x']);
	for (const email of ['ada@example.org', 'gone@example.org'])
		await project.json(['subscribers', 'create', '-l', 'People', '--email', email]);
	const html = '<p>Hi</p><a href="https://x.example/">x</a>';
	const send = ['send', '--from', 'news@example.com', '--list', 'People', '--subject', 'Hi', '--html', html];
	await project.run([...send, '--tag', 'may', '--bulk', '--yes', '--expect-count', '2']);
	await sink.until(1);
	const mail = await PostalMime.parse(sink.received[0]?.raw ?? '');
	const address = (kind: string) =>
		new RegExp(`"(${server.baseUrl}/${kind}/[^"]*)"`).exec(mail.html ?? '')?.[1] ?? '';
	const browser = { headers: { 'User-Agent': 'Mozilla/5.0 Firefox/120' }, redirect: 'manual' } as const;
	for (let again = 0; again < 2; again++) await fetch(address('o'), browser);
	await fetch(address('c'), browser);
	const leave = mail.headers.find(({ key }) => key === 'list-unsubscribe')?.value ?? '';
	await fetch(leave.replace(/[<>]/g, ''), {
		method: 'POST',
		body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }),
	});

	const types = () => calls.map(({ body }) => (JSON.parse(body) as Notification).type).sort();
	await eventually(async () =>
		expect(await types()).toEqual(['HARDBOUNCED', 'OPENED', 'REDIRECTED', 'UNSUBSCRIBED']),
	);
	const [secret] = (await project.json(['webhooks', 'secret'])) as { secret: string }[];
	const told = calls.map(({ headers, body }) => {
		const signed = headers as Record<string, string>;
		return new Webhook(secret?.secret ?? '').verify(body, signed) as Notification;
	});
	const of = (type: string) => told.find((one) => one.type === type);
	expect(of('HARDBOUNCED')).toMatchObject({
		test: false,
		message: { to: 'gone@example.org', subject: 'Hi', tag: 'may' },
		data: { smtp_code: '5.1.1', diagnostic: expect.stringContaining('no such user') },
	});
	expect(of('REDIRECTED')).toMatchObject({
		message: { to: 'ada@example.org' },
		data: { url: 'https://x.example/' },
	});
	expect(of('OPENED')?.data.user_agent).toBe('Mozilla/5.0 Firefox/120');
	const delivered = async (id: number) =>
		((await project.json(['webhooks', 'deliveries', String(id)])) as { state: string }[]).map(
			({ state }) => state,
		);
	await eventually(async () =>
		expect(await Promise.all([1, 2, 3, 4, 5].map(delivered))).toEqual([
			['delivered'],
			['delivered'],
			['delivered'],
			['delivered'],
			[],
		]),
	);
});
