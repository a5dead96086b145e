/**
 * The contract on two servers of one database. A balancer alternates between them, so each server must see the changes
 * of the other.
 */
import { readFile, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from '../../src/cli/connect.js';
import { createClient } from '../../src/http/client/client.js';
import { apiSuite, type Subject } from '../contract/api.suite.js';
import { campaignJobsSuite } from '../contract/campaigns.suite.js';
import { extensionsSuite } from '../contract/extensions.suite.js';
import { peopleSuite } from '../contract/people.suite.js';
import { suppressionsSuite } from '../contract/suppressions.suite.js';
import { makeHome } from '../support/cli.js';
import { clientOptions } from '../support/client.js';
import { dependencies } from '../support/connect.js';
import { describePostgres } from '../support/postgres.js';

async function startBalancer(targets: readonly string[]): Promise<{ url: string; close: () => void }> {
	let requests = 0;
	const server = createServer((from, to) => {
		const { hostname, port } = new URL(targets[requests % targets.length] ?? '');
		requests += 1;
		const { method = 'GET', url: path = '/', headers } = from;
		const passed = request({ hostname, port, method, path, headers }, (answer) => {
			to.writeHead(answer.statusCode ?? 502, answer.headers);
			answer.pipe(to);
		});
		passed.on('error', () => to.destroy());
		from.pipe(passed);
	});
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	const { port } = server.address() as AddressInfo;
	const close = () => {
		server.close();
		server.closeAllConnections();
	};
	return { url: `http://127.0.0.1:${port}`, close };
}

describePostgres('two servers on one database', (server) => {
	async function balanced(): Promise<Subject> {
		const db = await server.createProject();
		const home = await makeHome();
		const sender = 'news@example.com';
		const closings: (() => Promise<void> | void)[] = [() => rm(home, { recursive: true })];
		const urls: string[] = [];
		let token: string | null = null;
		for (const _ of [1, 2]) {
			const connection = await connect(
				{ kind: 'local', url: db, create: true },
				dependencies({ role: 'serve', env: { HOME: home } }),
			);
			closings.unshift(() => connection.close());
			if (token === null) {
				await connection.api.senders.create({ from_email: sender });
				await connection.local?.settings.set({ public_url: 'https://mail.example.com' });
			}
			const running = await connection.local?.serve({
				...{ host: '127.0.0.1', port: 0, tls: null, trustProxy: false },
				...{ bounceSmtp: null, sending: null, log: () => {} },
			});
			if (running === undefined) throw new Error('it does not serve');
			closings.unshift(() => running.close());
			urls.push(running.url);
			if (running.newTokenFile !== null) token = (await readFile(running.newTokenFile, 'utf8')).trim();
		}
		const balancer = await startBalancer(urls);
		const client = createClient(clientOptions({ baseUrl: balancer.url, token }));
		closings.unshift(() => client.close(), balancer.close);
		return {
			api: client.api,
			sender,
			close: async () => {
				for (const close of closings) await close();
			},
		};
	}

	const name = 'client → balancer → two servers → PostgreSQL';
	apiSuite(name, balanced);
	extensionsSuite(name, balanced);
	suppressionsSuite(name, balanced);
	peopleSuite(name, balanced);
	campaignJobsSuite(name, balanced);
});
