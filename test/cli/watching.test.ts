import { PassThrough } from 'node:stream';
import { beforeAll, describe, expect, it } from 'vitest';
import { ApiError } from '../../src/api/errors.js';
import { Interrupted } from '../../src/cli/frame/errors.js';
import type { OutStream } from '../../src/cli/frame/io.js';
import { createRedraw } from '../../src/cli/render/redraw.js';
import { makeProject, type Project } from '../support/project.js';
import { startSmtpSink } from '../support/smtp-sink.js';
import { stripped } from '../support/stripped.js';

let project: Project;
let campaign: string;
beforeAll(async () => {
	const sink = await startSmtpSink();
	project = await makeProject({ smtp: sink.port });
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	await project.json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com']);
	const content = ['--from', 'news@example.com', '--list', '1', '--subject', 'News', '--text', 'Hi'];
	const sent = await project.json(['send', ...content, '--yes', '--expect-count', '1']);
	campaign = (sent as { name: string }).name;
	await sink.close();
});

function thirdEnds(failure = new ApiError('network', 'no answer')) {
	const stop = new AbortController();
	let looks = 0;
	const connect = stripped({
		change: (api) => ({
			...api,
			report: (query, call) => {
				looks += 1;
				if (looks === 2) throw failure;
				if (looks === 4) stop.abort(new Interrupted('SIGINT'));
				return api.report(query, call);
			},
		}),
	});
	return { connect, interrupts: stop.signal };
}

const day = ['report', '--from', '2026-11-01', '--to', '2026-11-01', '--watch', '1s'];

describe('--watch', () => {
	it('prints a block per round into a pipe, reports failures, and stops at a signal', async () => {
		const { code, stdout, stderr } = await project.run(day, thirdEnds());
		expect({ code, stdout }).toEqual({ code: 130, stdout: '2026-11-01\t0\t0\n\n2026-11-01\t0\t0\n' });
		expect(stderr).toBe(
			'looking every 1 s; press Ctrl-C to end\nwarning: this refresh failed: no answer\ninterrupted\n',
		);
	});

	it('prints one document per line as ndjson', async () => {
		const { stdout } = await project.run([...day, '-o', 'ndjson'], thirdEnds());
		const lines = stdout.trimEnd().split('\n');
		expect(lines).toHaveLength(2);
		for (const line of lines) expect(JSON.parse(line)).toMatchObject({ data: [{ date: '01.11.2026' }] });
	});

	it('shows only the latest round on a terminal', async () => {
		const { stdout, stderr } = await project.run([...day, '--chart', 'none'], {
			...thirdEnds(),
			columns: 80,
		});
		expect(stdout).toContain('\x1b[8A\r\x1b[J2026-11-01');
		expect(stderr).toMatch(/refreshed at \d\d:\d\d:\d\d, again every 1 s; press Ctrl-C to end/);
		expect(stderr).toMatch(/failed at \d\d:\d\d:\d\d, again every 1 s/);
		expect(stderr).toMatch(/\r\x1b\[Kinterrupted\n$/);
	});

	it('stops at an error that every later round would repeat', async () => {
		const refused = thirdEnds(new ApiError('not_authenticated', 'Invalid token.'));
		expect(await project.run(day, refused)).toMatchObject({ code: 4 });
		const nothing = await project.run(['campaigns', 'get', 'none', '--watch', '1s']);
		expect(nothing).toMatchObject({ code: 3 });
	});

	it('stops at the deadline, at a true --fail-if condition, or at the end of the campaign', async () => {
		expect(await project.run([...day, '--deadline', '1500ms'])).toMatchObject({ code: 12 });
		const test = ['report', '--watch', '1s', '--fail-if', 'sent>0'];
		expect(await project.run(test)).toMatchObject({ code: 10 });
		const done = await project.run(['campaigns', 'get', campaign, '--watch', '1s', '-o', 'ndjson']);
		expect(done.code).toBe(0);
		expect(JSON.parse(done.stdout)).toMatchObject({ name: campaign, state: 'finished' });
	});

	it.each([
		[['-o', 'json'], '--watch cannot be used with -o json, which is one document'],
		[['--save', 'a.csv'], 'use either --save or --watch, not both'],
	])('is rejected together with %j', async (more, message) => {
		const { code, stderr } = await project.run([...day, ...more]);
		expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
	});
});

describe('a redrawn view', () => {
	function terminal(columns: number, rows: number) {
		const written: string[] = [];
		const stream: OutStream = {
			...{ isTTY: true, columns, raw: Object.assign(new PassThrough(), { rows }) },
			write: async (text) => void written.push(String(text)),
		};
		return { screen: createRedraw(stream), written };
	}
	const update = (text: string) => `\x1b[?2026h${text}\x1b[?2026l`;

	it('overwrites all rows of the previous view, including wrapped lines', async () => {
		const { screen, written } = terminal(10, 20);
		await screen.draw('short\nof twelve c.\n');
		await screen.draw('new\n');
		await screen.clear();
		await screen.clear();
		expect(written).toEqual([
			update('short\nof twelve c.\n'),
			update('\x1b[3A\r\x1b[Jnew\n'),
			'\x1b[1A\r\x1b[J',
		]);
	});

	it('cuts off rows that do not fit the screen, and prints how many', async () => {
		const { screen, written } = terminal(20, 5);
		await screen.draw('a\nb\nc\n');
		await screen.draw('a\nb\nc\nd\n');
		expect(written).toEqual([update('a\nb\nc\n'), update('\x1b[3A\r\x1b[Ja\nb\n(2 more lines)\n')]);
	});
});
