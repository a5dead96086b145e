// least-sender.mjs on the messages of a staged queue.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { runProgram } from '../support/run-program.js';
import { program } from './bench.js';
import type { Place } from './server.js';

const sender = join(process.cwd(), 'test/bench/least-sender.mjs');

export type SendWithLeast = () => Promise<number>;

export function stageLeast(
	{ path, folder, env }: Place,
	{ port, connections, key }: { port: number; connections: number; key?: string },
): SendWithLeast {
	const staged = join(folder, 'least.db');
	const messages = copyMessages(path, staged);
	const template = join(folder, 'template.eml');
	writeFileSync(template, templateOf(firstMail(staged, env)), 'latin1');
	const keyFile = join(folder, 'key.pem');
	if (key !== undefined) writeFileSync(keyFile, key);
	const round = join(folder, 'least-round.db');
	const words = [sender, String(port), String(connections), round, template];
	return async () => {
		copyFileSync(staged, round);
		const began = performance.now();
		const child = spawn(process.execPath, key === undefined ? words : [...words, keyFile], {
			stdio: 'inherit',
		});
		const [code] = await once(child, 'close');
		const seconds = (performance.now() - began) / 1000;
		if (code !== 0 || sentIn(round) !== messages) throw new Error('the least sender did not send all');
		return messages / seconds;
	};
}

function copyMessages(from: string, to: string): number {
	const db = new Database(to);
	db.pragma('journal_mode = WAL');
	db.exec(`
		CREATE TABLE messages (
			id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, email TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL,
			attempts INTEGER NOT NULL, wake_at INTEGER, lease_owner TEXT, fence INTEGER NOT NULL, sent_at INTEGER,
			last_reply TEXT
		);
		CREATE INDEX messages_due ON messages (wake_at, id) WHERE wake_at IS NOT NULL;
		ATTACH '${from}' AS staged;
		INSERT INTO messages
			SELECT id, uuid, to_email, variables ->> 'name', 'queued', 0, 0, NULL, 0, NULL, NULL FROM staged.messages;
		DETACH staged`);
	const { changes } = db.prepare(`UPDATE messages SET wake_at = 0 WHERE state = 'queued'`).run();
	db.close();
	return changes;
}

function firstMail(staged: string, env: NodeJS.ProcessEnv) {
	const db = new Database(staged, { readonly: true });
	const first = db.prepare<[], { uuid: string; email: string; name: string }>('SELECT * FROM messages').get();
	db.close();
	if (first === undefined) throw new Error('no messages');
	const { stdout } = runProgram(process.execPath, [program, 'messages', 'raw', first.uuid], { env });
	return { ...first, raw: stdout };
}

function sentIn(path: string): number {
	const db = new Database(path);
	const count = db.prepare(`SELECT count(*) FROM messages WHERE state = 'sent'`).pluck().get();
	db.close();
	return Number(count);
}

function templateOf({ raw, uuid, email, name }: ReturnType<typeof firstMail>): string {
	const body = raw.indexOf('\r\n\r\n');
	let links = 0;
	return raw
		.replace(
			/(mail\.example\.org\/([cuo])\/)(?:[\w-]|=\r\n)+/g,
			(_all, begin: string, purpose: string, at: number) => {
				const token = purpose === 'c' ? `c${links++}` : purpose;
				return `${begin}${at < body ? '' : '=\r\n'}#${token}#`;
			},
		)
		.replace(/^Date: .*(?=\r$)/m, 'Date: #date#')
		.replaceAll(uuid, '#uuid#')
		.replaceAll(email, '#email#')
		.replaceAll(name, '#name#')
		.replace(/(?:\r\n)*$/, '\r\n');
}
