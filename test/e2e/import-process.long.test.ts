import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isBuilt, programPath, startProgram } from '../support/cli.js';
import { closeNow, listenOn } from '../support/listen.js';
import { isInstalled, runProgram } from '../support/run-program.js';

const hasStrace = isInstalled('strace');

function workplace() {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-import-'));
	const env = {
		PATH: process.env['PATH'] ?? '',
		HOME: folder,
		TERM: 'dumb',
		MAILCTL_DB: join(folder, 'news.db'),
	};
	const shell = (script: string) =>
		runProgram('bash', ['-c', script], {
			env: { ...env, NODE: process.execPath, P: programPath },
			cwd: folder,
		});
	const people = (count: number) => {
		const rows = Array.from({ length: count }, (_, n) => `p${n}@example.com,Person ${n}`);
		writeFileSync(join(folder, 'people.csv'), `email,name\n${rows.join('\n')}\n`);
	};
	shell('"$NODE" "$P" engine init && "$NODE" "$P" lists create --name Readers --email-reason r');
	return { folder, shell, people };
}

describe.skipIf(!isBuilt)('an import by the built program', () => {
	it.skipIf(!hasStrace)(
		'ends with 74 on a full disk, and continues when the disk has space again (needs strace)',
		() => {
			const { shell, people } = workplace();
			people(30_000);
			const inject = '-f -qq -o /dev/null -e trace=pwrite64 -e inject=pwrite64:error=ENOSPC:when=40+';
			const full = shell(
				`strace ${inject} "$NODE" "$P" subscribers import people.csv -l 1 --batch-size 1000`,
			);
			expect(full.status).toBe(74);
			expect(full.stderr).toContain('error: no space left on the disk of ');
			const { status, stdout } = shell('"$NODE" "$P" subscribers import people.csv -l 1 --resume -o json');
			const counts = JSON.parse(stdout) as { read: number; created: number };
			expect({ status, ...counts }).toMatchObject({ status: 0, read: 30_000, created: 30_000, rejected: 0 });
		},
	);

	it('waits for its running request after the first Ctrl-C, but not after the second', async () => {
		const { folder, people } = workplace();
		people(3);
		const service = await startHanging();
		const child = startProgram(
			['--base-url', service.baseUrl, 'subscribers', 'import', join(folder, 'people.csv'), '-l', '1'],
			{ HOME: folder },
		);
		const closed = once(child, 'close');
		await Promise.race([service.posted, closed]);
		const again = setInterval(() => child.kill('SIGINT'), 20);
		const [code, signal] = await closed;
		clearInterval(again);
		expect({ code, signal }).toEqual({ code: null, signal: 'SIGINT' });
	});
});

/** Starts a service that has one empty list and never answers a POST. */
async function startHanging(): Promise<{ baseUrl: string; posted: Promise<void> }> {
	let tell: () => void = () => {};
	const posted = new Promise<void>((resolve) => {
		tell = resolve;
	});
	const list = { id: 1, name: 'Readers', email_reason: 'r', date_created: '2026-11-01T10:00:00.000000' };
	const counts = { active_subscribers_count: 0, inactive_subscribers_count: 0, overall_subscribers_count: 0 };
	const answer = ({ method, url = '' }: IncomingMessage, response: ServerResponse) => {
		if (method === 'POST') return tell();
		const body = /^\/sub\/lists\/1\/$/.test(url)
			? { ...list, ...counts }
			: { count: 0, next: null, previous: null, results: [] };
		response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
	};
	const server = createServer(answer);
	const port = await listenOn(server);
	onTestFinished(() => closeNow(server));
	return { baseUrl: `http://127.0.0.1:${port}`, posted };
}
