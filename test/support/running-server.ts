/** `mailctl serve` in this process, on a free port, over a database. */
import { readFile } from 'node:fs/promises';
import { Writable } from 'node:stream';
import { Interrupted } from '../../src/cli/frame/errors.js';
import { main } from '../../src/cli/main.js';
import { makeHome } from './cli.js';

export interface RunningServer {
	baseUrl: string;
	token: string;
	tokenFile: string;
	bounceSmtp: string | null;
	log(): string;
	stop(): Promise<number>;
}

export async function startServer(db: string, more: readonly string[] = []): Promise<RunningServer> {
	const stop = new AbortController();
	let said = '';
	let tell: () => void = () => {};
	const listening = new Promise<void>((resolve) => {
		tell = () => {
			if (/listening on \S+/.test(said)) resolve();
		};
	});
	const hear = new Writable({
		write(chunk: Buffer, _encoding, done) {
			said += chunk.toString();
			tell();
			done();
		},
	});
	let logged = '';
	const log = new Writable({
		write(chunk: Buffer, _encoding, done) {
			logged += chunk.toString();
			done();
		},
	});
	const ended = main({
		argv: ['--db', db, 'serve', '--port', '0', ...more],
		env: { HOME: await makeHome(), TERM: 'dumb' },
		stdout: Object.assign(log, { isTTY: false }),
		stderr: Object.assign(hear, { isTTY: false }),
		interrupts: stop.signal,
	});
	const first = await Promise.race([listening, ended]);
	const baseUrl = /listening on (\S+)/.exec(said)?.[1];
	if (first !== undefined || baseUrl === undefined) throw new Error(`mailctl serve did not start: ${said}`);
	const tokenFile = /wrote an API token with all rights to (\S+)/.exec(said)?.[1] ?? `${db}.token`;
	return {
		baseUrl,
		tokenFile,
		bounceSmtp: /accepting bounces at (\S+)/.exec(said)?.[1] ?? null,
		log: () => logged,
		token: (await readFile(tokenFile, 'utf8')).trim(),
		stop: () => {
			stop.abort(new Interrupted('SIGTERM'));
			return ended;
		},
	};
}
