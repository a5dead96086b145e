import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connect } from '../../../../src/cli/connect.js';
import type { Connect } from '../../../../src/cli/frame/connection.js';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import { errorOf, makeProject, type Project, said } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

let project: Project;
let sink: SmtpSink;

beforeEach(async () => {
	sink = await startSmtpSink();
	project = await makeProject({ smtp: sink.port });
});
afterEach(() => sink.close());

const table = (rows: readonly string[]) => project.file('people.csv', `email\n${rows.join('\n')}\n`);
const people = (count: number) => Array.from({ length: count }, (_, row) => `r${row}@example.com`);
const send = (file: string, count: number, ...more: string[]) => [
	...['send', '--from', 'news@example.com', '--csv', file, '--subject', 'S', '--text', 'T'],
	...['--yes', '--expect-count', String(count), ...more],
];

describe('the output of a campaign', () => {
	it('counts rejected rows as recipients, both in `campaigns get` and in `campaigns list`', async () => {
		const file = await table(['a@example.com', 'b@example.com', 'nobody', 'nobody2', 'nobody3']);
		const wrong = await project.run(send(file, 5, '--skip-invalid'));
		expect([wrong.code, wrong.stderr]).toEqual([
			2,
			expect.stringContaining('people.csv has 2 recipients, not 5; nothing was released'),
		]);
		const job = send(file, 2, '--skip-invalid', '--campaign', 's1', '-o', 'table');
		expect((await project.run(job)).stderr).toContain('2 recipients, 3 left out of people.csv\n');
		const one = (await project.json(['campaigns', 'get', 's1'])) as Record<string, unknown>;
		expect(one).toMatchObject({ recipients: 5, staged: 2, rejected: 3, messages: { sent: 2 } });
		const { messages: _, ...listed } = one;
		expect(await project.json(['campaigns', 'list'])).toEqual([listed]);
	});

	it('prints equal errors as one line with a count, but lists every error in JSON', async () => {
		const file = await table(Array.from({ length: 30 }, (_, row) => `bad${row}`));
		const seen = await project.run(send(file, 30));
		expect(seen.stderr).toContain(
			'error: to: Enter a valid email address: it has no @: 30 of 30 recipients (the first: line 2 bad0, line 3 bad1, line 4 bad2)\n' +
				'hint: correct them, or add --skip-invalid',
		);
		expect(errorOf(await project.run([...send(file, 30), '-o', 'json']))['details']).toHaveLength(30);
	});

	it('prints the most frequent error first, and the line number of an error that occurs once', async () => {
		const odd = 'äëïöüßøåæñç'.split('').map((letter) => `${letter}x@example.com`);
		const seen = await project.run(
			send(await table(['a@example.com', ...odd, 'A@example.com', 'nobody', 'no']), 15),
		);
		const lines = seen.stderr.split('\n').filter((line) => line.startsWith('error: '));
		expect(lines).toEqual([
			'error: 14 recipients have errors; nothing was released',
			'error: to: Enter a valid email address: the part before @ has a character outside ASCII: 11 of 15 recipients (the first: line 3 äx@example.com, line 4 ëx@example.com, line 5 ïx@example.com)',
			'error: to: Enter a valid email address: it has no @: 2 of 15 recipients (the first: line 15 nobody, line 16 no)',
			'error: line 14: A@example.com is in this campaign already.',
		]);
	});
});

describe('staging a list', () => {
	const inSlices: Connect = async (target, dependencies) => {
		const connection = await connect(target, dependencies);
		const { api } = connection;
		const capabilities = async () => {
			const { ext, ...others } = await api.capabilities();
			const { campaigns } = ext;
			if (campaigns === undefined) throw new Error('the engine keeps campaigns');
			const addList: typeof campaigns.addList = (id, list, call) =>
				campaigns.addList(id, list, { ...call, forMs: 0 });
			return { ...others, ext: { ...ext, campaigns: { ...campaigns, addList } } };
		};
		return { ...connection, api: { ...api, capabilities } };
	};

	it('shows its progress as a share of the whole list', async () => {
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		const file = await table(people(2_500));
		await project.json(['subscribers', 'import', file, '-l', '1']);
		const words = ['--from', 'news@example.com', '--list', '1', '--subject', 'S', '--text', 'T', '--no-wait'];
		const { code, stderr } = await project.run(['send', ...words, '--yes', '--expect-count', '2500'], {
			connect: inSlices,
			interactive: true,
			columns: 80,
		});
		expect([code, stderr]).toEqual([0, expect.stringMatching(/staging \d,\d00 of 2,500 · \d+%/)]);
	});
});

describe('a send that the user interrupts', () => {
	/** Sends Ctrl-C when `count` messages are sent. */
	function interruptedAt(count: number, isWorking = false): { connect: Connect; interrupts: AbortSignal } {
		const controller = new AbortController();
		return {
			interrupts: controller.signal,
			connect: async (target, dependencies) => {
				const connection = await connect(target, dependencies);
				const { local } = connection;
				if (local === null) throw new Error('the database is on this machine');
				const deliver: typeof local.deliver = (options) =>
					local.deliver({
						...options,
						onProgress: (counts) => {
							if (counts.sent >= count) controller.abort(new Interrupted('SIGINT'));
							options.onProgress?.(counts);
						},
					});
				const queue = { ...local.queue, hasWorker: async () => isWorking };
				return { ...connection, local: { ...local, deliver, queue } };
			},
		};
	}

	it('prints how to resume or cancel the campaign, writes the results, and is completed by `campaigns resume`', async () => {
		const results = join(project.folder, 'r.csv');
		const words = send(
			await table(people(600)),
			600,
			...'--campaign j --rate 5000/s --results'.split(' '),
			results,
		);
		const cut = await project.run(words, interruptedAt(50));
		const database = `mailctl --db ${project.db}`;
		expect(cut.code).toBe(130);
		expect(cut.stderr).toContain(
			`hint: ${database} campaigns resume j continues, ${database} campaigns cancel j drops the unsent messages\n`,
		);
		expect((await readFile(results, 'utf8')).trimEnd().split('\r\n')).toHaveLength(601);
		const before = sink.received.length;
		expect(before).toBeLessThan(600);
		const resumed = await project.run(['campaigns', 'resume', 'j', '--results', results]);
		expect([resumed.code, resumed.stderr]).toEqual([0, expect.stringContaining('sent 600\n')]);
		const again = await project.run(['campaigns', 'resume', 'j']);
		expect([again.code, again.stderr]).toEqual([0, 'the campaign "j" is finished: sent 600\n']);
		const canceled = await project.run(['campaigns', 'cancel', 'j', '--yes', '-o', 'json']);
		expect([JSON.parse(canceled.stdout)['state'], said(canceled)]).toEqual([
			'finished',
			[{ note: 'nothing to cancel: sent 600' }],
		]);
	});

	it('prints that a running worker ignores --rate and continues the campaign', async () => {
		const words = send(await table(people(9)), 9, '--campaign', 'j', '--rate', '5/s');
		const { stderr } = await project.run(words, interruptedAt(1, true));
		expect(stderr).toContain('warning: a running serve or worker ignores --rate; the setting send_limit');
		expect(stderr).toContain('hint: the worker continues; ');
	});
});
