/**
 * `send --list` on a server, with client and server killed in turn during staging. Each subscriber must get exactly
 * one mail. `MAILCTL_KILL_ROWS` and `MAILCTL_KILLS` set another size.
 */
import type { ChildProcess } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { cli, isBuilt, makeHome, startProgram } from '../support/cli.js';
import { startCountingSink } from '../support/counting-sink.js';
import { eventually } from '../support/eventually.js';
import { asked, type Ended, ended, seeded, timeLimit } from '../support/fault-points.js';
import { describePostgres } from '../support/postgres.js';

const rows = asked('MAILCTL_KILL_ROWS', 12_000);
const kills = asked('MAILCTL_KILLS', 4);

it.skipIf(!isBuilt)(
	'each subscriber of a list on SQLite gets one mail, whatever is killed',
	async () => {
		await killWhileStaging(join(await makeHome(), 'news.db'));
	},
	timeLimit,
);

describePostgres('send --list on PostgreSQL', (server) => {
	it.skipIf(!isBuilt)(
		'sends each subscriber one mail, whatever is killed',
		async () => {
			await killWhileStaging(await server.createDatabase());
		},
		timeLimit,
	);
});

async function killWhileStaging(db: string): Promise<void> {
	const reached = new Map<string, number>();
	const sink = await startCountingSink((to) => reached.set(to, (reached.get(to) ?? 0) + 1));
	onTestFinished(sink.close);
	const home = await makeHome();
	const run = async (...words: string[]) => {
		const { code, stdout, stderr } = await cli(['--db', db, ...words], { env: { HOME: home } });
		expect([words, code, code === 0 ? '' : stderr]).toEqual([words, 0, '']);
		return stdout;
	};
	const people = join(home, 'people.csv');
	await writeFile(people, `email\n${Array.from({ length: rows }, (_, n) => `p${n}@example.org\n`).join('')}`);
	await run('engine', 'init', '--smtp', `smtp://127.0.0.1:${sink.port}`, '--sender', 'news@example.com');
	await run('lists', 'create', '--name', 'News', '--email-reason', 'x');
	await run('subscribers', 'import', people, '--list', 'News');
	const token = (await run('engine', 'tokens', 'create', '--name', 'shop', '--scope', 'admin', '-q')).trim();

	// The queue is paused, so that no kill can come after the campaign has begun to send.
	await run('engine', 'queue', 'pause');
	let serving = await serve(db, home, '0');
	onTestFinished(() => void serving.child.kill('SIGKILL'));
	const { port } = serving;
	const consent = ['--yes', '--expect-count', String(rows), '--no-wait', '--campaign', 'big'];
	const start = (): { child: ChildProcess; end: Promise<Ended> } => {
		const child = startProgram(
			...([
				['--base-url', `http://127.0.0.1:${port}`, '--timeout', '1s', 'send', '--list', 'News', '--bulk']
					.concat('--from', 'news@example.com', '--subject', 'News', '--text', 'Hi #unsubscribe_url#')
					.concat(consent, '-o', 'json'),
				{ HOME: home, MAILCTL_TOKEN: token },
			] as const),
		);
		onTestFinished(() => void child.kill('SIGKILL'));
		return { child, end: ended(child) };
	};
	const staged = async () => {
		const [found] = JSON.parse(await run('campaigns', 'list', '-o', 'json')) as { staged: number }[];
		return found?.staged ?? 0;
	};

	let sending = start();
	let [ofServer, ofClient] = [0, 0];
	const moments = Array.from({ length: kills }, seeded()).sort((one, other) => one - other);
	for (const [at, moment] of moments.entries()) {
		while (sending.child.exitCode === null && (await staged()) < moment * rows * 0.8);
		if (at % 2 === 0) {
			serving.child.kill('SIGKILL');
			ofServer += 1;
			await serving.end;
			serving = await serve(db, home, port);
		} else {
			sending.child.kill('SIGKILL');
			const { code } = await sending.end;
			if (code === null) ofClient += 1;
		}
		if (sending.child.exitCode !== null || sending.child.signalCode !== null) sending = start();
	}
	let last = await sending.end;
	for (let tries = 0; last.code !== 0 && tries < 5; tries += 1) last = await start().end;
	expect([last.code, last.code === 0 ? '' : last.stderr]).toEqual([0, '']);
	expect(JSON.parse(last.stdout)).toMatchObject({ staged: rows, rejected: 0 });
	expect(sink.received()).toBe(0);
	await run('engine', 'queue', 'resume');
	await eventually(() => expect(sink.received()).toBeGreaterThanOrEqual(rows), 120_000);
	serving.child.kill('SIGTERM');
	await serving.end;
	expect([reached.size, sink.received()]).toEqual([rows, rows]);
	process.stderr.write(
		`${rows} people once after ${ofServer} kills of the server, ${ofClient} of the client\n`,
	);
	expect(ofServer + ofClient).toBeGreaterThanOrEqual(kills / 2);
}

async function serve(db: string, home: string, port: string) {
	const child = startProgram(['--db', db, 'serve', '--port', port], { HOME: home });
	const end = ended(child);
	const found = await new Promise<string>((resolve, reject) => {
		let said = '';
		child.stderr.on('data', (chunk: Buffer) => {
			said += chunk.toString();
			const where = /listening on http:\/\/[^:]+:(\d+)/.exec(said)?.[1];
			if (where !== undefined) resolve(where);
		});
		child.once('exit', () => reject(new Error(`serve has ended: ${said}`)));
	});
	return { child, end, port: found };
}
