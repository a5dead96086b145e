// `mailctl serve`: its worker sends, its pages count, its report shows it, and a subscriber who leaves is gone.
import PostalMime from 'postal-mime';
import { expect, it, onTestFinished } from 'vitest';
import { describeDatabases } from '../support/databases.js';
import { eventually } from '../support/eventually.js';
import { makeProject, type Project } from '../support/project.js';
import { type RunningServer, startServer } from '../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

interface Place {
	project: Project;
	server: RunningServer;
	sink: SmtpSink;
}

async function begin(db: string): Promise<Place> {
	const sink = await startSmtpSink();
	onTestFinished(sink.close);
	const project = await makeProject({ smtp: sink.port, db });
	const server = await startServer(project.db);
	onTestFinished(async () => void (await server.stop()));
	await project.json(['engine', 'settings', 'set', 'public_url', server.baseUrl]);
	return { project, server, sink };
}

describeDatabases('a campaign sent by the server', ({ create }) => {
	it('is opened, clicked, viewed and left', async () => expectFollowed(await begin(await create())));
});

async function expectFollowed({ project, server, sink }: Place): Promise<void> {
	await project.json(['lists', 'create', '--name', 'People', '--email-reason', 'x']);
	await project.json([
		'subscribers',
		'create',
		'-l',
		'People',
		'--email',
		'ada@example.org',
		'--name',
		'Ada',
	]);
	const html =
		'<style>a{color:red}</style><p>Hi #name#</p><a href="https://x.example/?n=#name#">x</a><a href="#view_url#">v</a>';
	const send = ['send', '--from', 'news@example.com', '--list', 'People', '--subject', 'Hi', '--html', html];
	await project.run([...send, '--bulk', '--yes', '--expect-count', '1']);
	await sink.until(1);
	const mail = await PostalMime.parse(sink.received[0]?.raw ?? '');
	const address = (kind: string) =>
		new RegExp(`"(${server.baseUrl}/${kind}/[^"]*)"`).exec(mail.html ?? '')?.[1] ?? '';
	const browser = {
		headers: { 'User-Agent': 'Mozilla/5.0 (X11; Linux) Firefox/120' },
		redirect: 'manual',
	} as const;

	expect((await fetch(address('o'), browser)).headers.get('content-type')).toBe('image/gif');
	expect((await fetch(address('c'), browser)).headers.get('location')).toBe('https://x.example/?n=Ada');
	expect(await (await fetch(address('v'), browser)).text()).toContain(
		'<p>Hi Ada</p><a href="https://x.example/?n=Ada"',
	);
	const field = mail.headers.find(({ key }) => key === 'list-unsubscribe')?.value ?? '';
	const left = await fetch(field.replace(/[<>]/g, ''), {
		method: 'POST',
		body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }),
	});
	expect([left.status, await left.text()]).toEqual([200, 'Unsubscribed.\n']);

	const total = async () => Object(await project.json(['report']))['total'];
	await eventually(async () =>
		expect(await total()).toMatchObject({
			sent: 1,
			opened: 1,
			opened_percent: '100',
			redirected_percent: 100,
			unsubscribed_percent: 100,
		}),
	);
	expect(await project.json(['subscribers', 'list', '-l', 'People'])).toMatchObject([
		{ email: 'ada@example.org', is_active: false, disable_reason: 'UNSUBSCRIBED' },
	]);
	const lifted = await project.run([
		'subscribers',
		'activate',
		'ada@example.org',
		'-l',
		'People',
		'-q',
		'-y',
	]);
	expect(lifted.stderr).toBe('warning: ada@example.org had unsubscribed; that is lifted\n');
}
