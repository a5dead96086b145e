// A campaign that `serve` sends is opened, clicked, viewed, left and refused: the report counts it, webhooks are told.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import PostalMime from 'postal-mime';
import { Webhook } from 'standardwebhooks';
import { expect, it, onTestFinished } from 'vitest';
import type { Notice } from '../../src/api/notifications.js';
import { webhookTypes } from '../../src/api/records.js';
import { describeDatabases } from '../support/databases.js';
import { eventually } from '../support/eventually.js';
import { listenOn } from '../support/listen.js';
import { makeProject } from '../support/project.js';
import { startServer } from '../support/running-server.js';
import { startSmtpSink } from '../support/smtp-sink.js';

async function begin(db: string) {
	const sink = await startSmtpSink({
		onRcptTo: ({ address }, _session, callback) => {
			const refusal = Object.assign(new Error('5.1.1 no such user'), { responseCode: 550 });
			callback(address.startsWith('gone@') ? refusal : null);
		},
	});
	onTestFinished(sink.close);
	const calls: { headers: IncomingHttpHeaders; body: string }[] = [];
	const target = createServer(async (request, response) => {
		let body = '';
		for await (const chunk of request) body += String(chunk);
		calls.push({ headers: request.headers, body });
		response.writeHead(204).end();
	});
	const port = await listenOn(target);
	onTestFinished(() => void target.close().closeAllConnections());
	const project = await makeProject({ smtp: sink.port, db });
	const server = await startServer(project.db);
	onTestFinished(async () => void (await server.stop()));
	await project.json(['engine', 'settings', 'set', 'public_url', server.baseUrl]);
	await project.json(['engine', 'settings', 'set', 'allow_private_webhooks', 'true']);
	const url = `http://127.0.0.1:${port}/in`;
	for (const type of webhookTypes) await project.json(['webhooks', 'create', '--url', url, '--type', type]);
	return { project, server, sink, calls };
}

const browser = { headers: { 'User-Agent': 'Mozilla/5.0 Firefox/120' }, redirect: 'manual' } as const;

describeDatabases('a campaign sent by the server', ({ create }) => {
	it('is followed on its pages, in the report and by webhooks, each event once', async () => {
		const { project, server, sink, calls } = await begin(await create());
		await project.json(['lists', 'create', '--name', 'People', '--email-reason', 'x']);
		for (const email of ['ada@example.org', 'gone@example.org'])
			await project.json(['subscribers', 'create', '-l', 'People', '--email', email, '--name', 'Ada']);
		const html =
			'<style>a{color:red}</style><p>Hi #name#</p><a href="https://x.example/?n=#name#">x</a><a href="#view_url#">v</a>';
		const send = [
			'send',
			'--from',
			'news@example.com',
			'--list',
			'People',
			'--subject',
			'Hi',
			'--html',
			html,
		];
		await project.run([...send, '--tag', 'may', '--bulk', '--yes', '--expect-count', '2']);
		await sink.until(1);
		const mail = await PostalMime.parse(sink.received[0]?.raw ?? '');
		const address = (kind: string) =>
			new RegExp(`"(${server.baseUrl}/${kind}/[^"]*)"`).exec(mail.html ?? '')?.[1] ?? '';

		for (let again = 0; again < 2; again++)
			expect((await fetch(address('o'), browser)).headers.get('content-type')).toBe('image/gif');
		expect((await fetch(address('c'), browser)).headers.get('location')).toBe('https://x.example/?n=Ada');
		expect(await (await fetch(address('v'), browser)).text()).toContain(
			'<p>Hi Ada</p><a href="https://x.exa',
		);
		const leave = mail.headers.find(({ key }) => key === 'list-unsubscribe')?.value ?? '';
		const left = await fetch(leave.replace(/[<>]/g, ''), {
			method: 'POST',
			body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }),
		});
		expect([left.status, await left.text()]).toEqual([200, 'Unsubscribed.\n']);

		const figures = { sent: 1, opened_percent: '100', redirected_percent: 100, unsubscribed_percent: 100 };
		await eventually(async () =>
			expect(await project.json(['report'])).toMatchObject({
				total: { ...figures, hardbounced_percent: 50 },
			}),
		);
		expect(await project.json(['subscribers', 'list', '-l', 'People'])).toMatchObject([
			{ email: 'ada@example.org', is_active: false, disable_reason: 'UNSUBSCRIBED' },
			{ email: 'gone@example.org', is_active: false, disable_reason: 'HARDBOUNCED' },
		]);

		const types = () => calls.map(({ body }) => (JSON.parse(body) as Notice).type).sort();
		await eventually(async () =>
			expect(await types()).toEqual(['HARDBOUNCED', 'OPENED', 'REDIRECTED', 'UNSUBSCRIBED']),
		);
		const [secret] = (await project.json(['webhooks', 'secret'])) as { secret: string }[];
		const told = calls.map(({ headers, body }) => {
			const signed = headers as Record<string, string>;
			return new Webhook(secret?.secret ?? '').verify(body, signed) as Notice;
		});
		const of = (type: string) => told.find((one) => one.type === type);
		expect(of('HARDBOUNCED')).toMatchObject({
			test: false,
			message: { to: 'gone@example.org', subject: 'Hi', tag: 'may' },
			data: { smtp_code: '5.1.1', diagnostic: expect.stringContaining('no such user') },
		});
		expect(of('REDIRECTED')).toMatchObject({
			message: { to: 'ada@example.org' },
			data: { url: 'https://x.example/?n=Ada' },
		});
		expect(of('OPENED')?.data.user_agent).toBe('Mozilla/5.0 Firefox/120');
		const delivered = async (id: number) =>
			((await project.json(['webhooks', 'deliveries', String(id)])) as { state: string }[]).map(
				({ state }) => state,
			);
		const one = ['delivered'];
		await eventually(async () =>
			expect(await Promise.all([1, 2, 3, 4, 5].map(delivered))).toEqual([one, one, one, one, []]),
		);
	});
});
