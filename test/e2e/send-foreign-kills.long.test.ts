/**
 * Campaigns on another service whose process is killed while it sends. The service records the recipients of each
 * call. `MAILCTL_KILL_ROWS`, `MAILCTL_KILLS` and `MAILCTL_FAULTS` set another size.
 */
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type MailService, type Reaction, startMailService } from '../support/campaigns-service.js';
import { isBuilt, programPath, startProgram } from '../support/cli.js';
import {
	asked,
	databaseCalls as calls,
	type Ended,
	ended,
	expectHappened,
	faultsOver,
	hasStrace,
	measurePoints,
	runNode,
	seeded,
	timeLimit,
} from '../support/fault-points.js';

const rows = asked('MAILCTL_KILL_ROWS', 300);
const kills = asked('MAILCTL_KILLS', 4);
const faults = asked('MAILCTL_FAULTS', 4);
const connections = 4;
const mail = ['--from', 'news@example.com', '--subject', 'Hi #name#', '--text', 'Hello'];

let home: string;
let react: (number: number) => Reaction;
let service: MailService;

async function begin(): Promise<void> {
	home = await mkdtemp(join(tmpdir(), 'mailctl-send-kills-'));
	react = () => ({ kind: 'make' });
	service = await startMailService({ react: (_request, number) => react(number) });
	const lines = Array.from({ length: rows }, (_, index) => `p${index}@example.com,P${index}`);
	await writeFile(join(home, 'people.csv'), `email,name\n${lines.join('\n')}\n`);
}

beforeEach(begin);
afterEach(() => service.close());

const send = () => [
	...[
		'send',
		...mail,
		'--csv',
		join(home, 'people.csv'),
		'--campaign',
		'j',
		'-y',
		'--expect-count',
		`${rows}`,
	],
	...['--connections', `${connections}`],
];
const resume = ['campaigns', 'resume', 'j', '--connections', `${connections}`];

function start(words: readonly string[]) {
	return startProgram(
		['--base-url', service.baseUrl, '--no-input', '--retries', '0', '-o', 'json', ...words],
		environment(),
	);
}

function environment() {
	return { HOME: home, MAILCTL_TOKEN: 't' };
}

function run(words: readonly string[]): Promise<Ended> {
	return ended(start(words));
}

/** Kills the process when the service receives the given call; half of these calls create a message, half do not. */
async function killedAt(words: readonly string[], call: number): Promise<Ended> {
	const child = start(words);
	const at = service.calls.length + call;
	react = (number) => {
		if (number < at) return { kind: 'make' };
		child.kill('SIGKILL');
		return number % 2 === 0 ? { kind: 'make', delayMs: 50 } : { kind: 'drop' };
	};
	const end = await ended(child);
	react = () => ({ kind: 'make' });
	return end;
}

async function uncertain(): Promise<Set<string>> {
	const path = join(home, 'results.csv');
	await run([...resume, '--results', path]);
	const lines = (await readFile(path, 'utf8')).split('\r\n').slice(1, -1);
	expect(lines).toHaveLength(rows);
	return new Set(
		lines
			.map((line) => line.split(','))
			.flatMap(([, to = '', , state]) => (state === 'uncertain' ? [to] : [])),
	);
}

/** Each recipient got the mail exactly once, or at most once if its outcome is unknown. */
function expectOnce(unknown: ReadonlySet<string>): void {
	const times = service.timesSent();
	const addresses = Array.from({ length: rows }, (_, index) => `p${index}@example.com`);
	expect(addresses.filter((to) => !unknown.has(to) && times[to] !== 1)).toEqual([]);
	expect(addresses.filter((to) => (times[to] ?? 0) > 1)).toEqual([]);
}

describe.skipIf(!isBuilt)('a campaign on another service', () => {
	it(
		'is sent once to everybody despite kills, and calls in flight become uncertain',
		async () => {
			const span = Math.floor(rows / (kills + 2));
			const random = seeded();
			let words: readonly string[] = send();
			for (let killed = 0; killed < kills; killed += 1) {
				expect((await killedAt(words, 1 + Math.floor(random() * span))).code).toBeNull();
				words = resume;
			}
			const end = await run(words);
			expect({ code: end.code, stderr: end.stderr }).toMatchObject({
				code: 13,
				stderr: expect.stringContaining('may or may not have been sent'),
			});
			const unknown = await uncertain();
			expect(unknown.size).toBeGreaterThanOrEqual(1);
			expect(unknown.size).toBeLessThanOrEqual(kills * connections);
			expectOnce(unknown);
			expect(await run([...resume, '--retry-unknown'])).toMatchObject({ code: 0 });
			expect(Object.keys(service.timesSent())).toHaveLength(rows);
			expect(service.messages.length).toBeLessThanOrEqual(rows + unknown.size);
			process.stderr.write(`a job elsewhere: ${rows} rows, ${kills} kills, ${unknown.size} unknown\n`);
		},
		timeLimit,
	);

	it.skipIf(!hasStrace)(
		'is sent once to everybody if a kill or disk error happens at any write (needs strace)',
		async () => {
			const words = () => [
				programPath,
				'--base-url',
				service.baseUrl,
				'--no-input',
				'--retries',
				'0',
				...send(),
			];
			const place = () => ({ env: { ...environment(), PATH: process.env['PATH'] ?? '' } });
			const { points, run: whole } = await measurePoints({ calls }, words(), place());
			expect(whole.code).toBe(0);
			const codes: (number | null)[] = [];
			let most = 0;
			for (const fault of faultsOver(points, { kills, faults })) {
				await begin();
				const { code, stderr } = await runNode(words(), fault, place());
				const what = `${JSON.stringify(fault)}: ${code} ${stderr}`;
				expect(fault.does === 'KILL' ? [0, null] : [0, 74], what).toContain(code);
				codes.push(code);
				expect([0, 13], what).toContain((await run(send())).code);
				const unknown = await uncertain();
				expect(unknown.size, what).toBeLessThanOrEqual(connections);
				expectOnce(unknown);
				most = Math.max(most, unknown.size);
				await service.close();
			}
			await begin();
			const what = `a job elsewhere, ${points.length} calls, at most ${most} unknown`;
			expectHappened(what, codes, { kills, faults });
		},
		timeLimit,
	);

	it('finishes its running calls on Ctrl-C, ends with 130, and can be resumed', async () => {
		const child = start(send());
		react = (number) => {
			if (number === 20) child.kill('SIGINT');
			return { kind: 'make', delayMs: 5 };
		};
		expect(await ended(child)).toMatchObject({
			code: 130,
			stderr: expect.stringContaining('campaigns resume j'),
		});
		expect(service.messages.length).toBeLessThan(rows);
		expect(await run(resume)).toMatchObject({ code: 0 });
		expectOnce(new Set());
	});
});
