/** An engine on a new database, served on a free port for a real client. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Api } from '../../src/api/api.js';
import type { Clock } from '../../src/api/datetime.js';
import { connect } from '../../src/cli/connect.js';
import { dependencies } from './connect.js';

export interface ServedEngine {
	url: string;
	db: string;
	token: string;
	sender: string;
	engine: Api;
	close(): Promise<void>;
}

export async function serveEngine({
	clock,
	settings = {},
}: {
	clock?: Clock;
	settings?: Readonly<Record<string, string>>;
} = {}): Promise<ServedEngine> {
	const sender = 'news@example.com';
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-served-'));
	const db = join(folder, 'engine.db');
	const connection = await connect(
		{ kind: 'local', url: db, create: true },
		dependencies(clock === undefined ? {} : { clock }),
	);
	await connection.api.senders.create({ from_email: sender });
	await connection.local?.settings.set({ public_url: 'https://mail.example.com', ...settings });
	const server = await connection.local?.serve({
		host: '127.0.0.1',
		port: 0,
		tls: null,
		trustProxy: false,
		bounceSmtp: null,
		sending: null,
		log: () => {},
	});
	if (server?.newTokenFile == null) throw new Error('the server made no token');
	const token = (await readFile(server.newTokenFile, 'utf8')).trim();
	return {
		url: server.url,
		db,
		token,
		sender,
		engine: connection.api,
		close: async () => {
			await server.close();
			await connection.close();
			await rm(folder, { recursive: true });
		},
	};
}
