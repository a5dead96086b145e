import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cli, isBuilt, makeHome, startProgram } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { asked, timeLimit } from '../support/fault-points.js';
import { freePort } from '../support/listen.js';
import { type BalancerName, noBalancer, startBalancer } from '../support/load-balancer.js';
import { ask, describePostgres } from '../support/postgres.js';

const restarts = asked('MAILCTL_KILLS', 3);
const clients = 6;

describePostgres('two servers behind a load balancer', (postgres) => {
	describe.each(['haproxy', 'nginx'] as const)('with %s', (name) => {
		const missing = noBalancer(name);
		const title = missing === null ? '' : ` (skipped: ${missing})`;
		it.skipIf(missing !== null || !isBuilt)(
			`answer every request while each is restarted ${restarts} times${title}`,
			async () => loseNothing(name, await postgres.createDatabase()),
			timeLimit,
		);
	});
});

async function loseNothing(name: BalancerName, db: string): Promise<void> {
	const home = await makeHome();
	const run = async (...words: string[]) => {
		const { code, stdout, stderr } = await cli(['--db', db, ...words], { env: { HOME: home } });
		expect([words, code, code === 0 ? '' : stderr]).toEqual([words, 0, '']);
		return stdout.trim();
	};
	await run('engine', 'init', '--sender', 'news@example.com');
	await run('lists', 'create', '--name', 'News', '--email-reason', 'x');
	const token = await run('engine', 'tokens', 'create', '--name', 'shop', '--scope', 'admin', '-q');
	const [portOne, portTwo, port] = [await freePort(), await freePort(), await freePort()];
	const servers = [await startServe(db, home, portOne), await startServe(db, home, portTwo)];
	onTestFinished(() => {
		for (const { child } of servers) child.kill('SIGKILL');
	});
	const balancer = await startBalancer(name, {
		addresses: { 'serve-1:8080': `127.0.0.1:${portOne}`, 'serve-2:8080': `127.0.0.1:${portTwo}` },
		at: `127.0.0.1:${port}`,
	});
	onTestFinished(balancer.stop);
	const load = createLoad({ port, token });
	await eventually(async () => expect(await load.ask('GET', '/sub/lists/1/')).toBe(200));
	load.start();
	onTestFinished(async () => void (await load.stop()));
	for (let round = 0; round < 2 * restarts; round += 1) {
		const at = round % 2;
		// Both servers get requests again, so the balancer knows that the restarted one is back.
		const seen = servers.map(({ requests }) => requests());
		await eventually(() => {
			for (const [index, { requests }] of servers.entries())
				expect(requests()).toBeGreaterThan((seen[index] ?? 0) + 20);
		});
		const [before] = servers.splice(at, 1);
		before?.child.kill('SIGTERM');
		expect(await before?.ended).toBe(0);
		servers.splice(at, 0, await startServe(db, home, at === 0 ? portOne : portTwo));
	}
	const { answers, created } = await load.stop();
	process.stderr.write(`${name}: ${2 * restarts} restarts, answers ${JSON.stringify(answers)}\n`);
	expect(Object.keys(answers).sort(), balancer.said()).toEqual(['200', '201']);
	expect(await ask(db, 'SELECT count(*)::int AS n FROM subscribers')).toEqual([{ n: created }]);
}

/** Resolves when the server listens, and counts the request lines of its log. */
async function startServe(db: string, home: string, port: number) {
	const words = ['--db', db, 'serve', '--port', String(port), '--no-worker', '--trust-proxy'];
	const child = startProgram(words, { HOME: home });
	const ended = once(child, 'exit').then(([code]) => code as number | null);
	let requests = 0;
	child.stdout.on('data', (chunk: Buffer) => {
		requests += chunk.toString().split('"path":"/sub/').length - 1;
	});
	await new Promise<void>((resolve, reject) => {
		let said = '';
		child.stderr.on('data', (chunk: Buffer) => {
			said += chunk.toString();
			if (said.includes('listening on')) resolve();
		});
		void ended.then((code) => reject(new Error(`serve ended with ${code}: ${said}`)));
	});
	return { child, ended, requests: () => requests };
}

/** Clients that send requests without pauses over keep-alive connections and never retry. */
function createLoad({ port, token }: { port: number; token: string }) {
	const agent = new Agent({ keepAlive: true });
	const headers = { 'X-Secure-Token': token, 'Content-Type': 'application/json' };
	const ask = (method: string, path: string, body?: string) =>
		new Promise<number | string>((resolve) => {
			const asking = request({ agent, host: '127.0.0.1', port, method, path, headers }, (answer) => {
				answer.resume();
				answer.on('end', () => resolve(answer.statusCode ?? 0));
			});
			asking.on('error', (error) => resolve(error.message));
			asking.end(body);
		});
	const answers: Record<string, number> = {};
	let isOver = false;
	let people = 0;
	let created = 0;
	const work = async () => {
		while (!isOver) {
			people += 1;
			const person = JSON.stringify({ email: `p${people}@example.org` });
			const told = [
				await ask('GET', '/sub/lists/1/'),
				await ask('POST', '/sub/lists/1/subscribers/', person),
			];
			for (const answer of told) answers[answer] = (answers[answer] ?? 0) + 1;
			if (told[1] === 201) created += 1;
		}
	};
	let working: Promise<unknown> = Promise.resolve();
	return {
		ask,
		start: () => {
			working = Promise.all(Array.from({ length: clients }, work));
		},
		stop: async () => {
			isOver = true;
			await working;
			agent.destroy();
			return { answers, created };
		},
	};
}
