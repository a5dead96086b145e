// Two people on one database, each with a home of his own: no lock is between their commands.
import { afterEach, describe, expect, it } from 'vitest';
import { connect } from '../../../../src/cli/connect.js';
import type { Connect } from '../../../../src/cli/frame/connection.js';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import { makeHome } from '../../../support/cli.js';
import { makeProject, type Project } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';
import { typing } from '../../../support/typing.js';

const sinks: SmtpSink[] = [];
afterEach(async () => {
	for (const sink of sinks.splice(0)) await sink.close();
});

/** A list of three people, one of whom has no city. */
async function start(): Promise<Project> {
	const sink = await startSmtpSink();
	sinks.push(sink);
	const project = await makeProject({ smtp: sink.port });
	await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
	await project.json(['fields', 'create', '--variable', 'city', '--name', 'City']);
	const rows = 'email,city\nann@example.com,Oslo\nbob@example.com,Rome\ncy@example.com,\n';
	const file = await project.file('people.csv', rows);
	await project.json(['subscribers', 'import', file, '-l', '1']);
	return project;
}

const mail = ['send', '--from', 'news@example.com', '--list', '1', '--subject', 'S', '--campaign', 'X'];
const plain = [...mail, '--text', 'T'];
const toCities = [...mail, '--text', 'In #city#'];

/** The same command of another person releases it. */
async function releaseElsewhere(project: Project, words: readonly string[], ...more: readonly string[]) {
	const agreed = ['--yes', '--no-wait', ...more];
	const { code, stderr } = await project.run([...words, ...agreed], { env: { HOME: await makeHome() } });
	expect(stderr).toContain('accepted and queued');
	return code;
}

const messagesOf = (project: Project) => project.json(['campaigns', 'get', 'X', '--fields', 'messages']);

/** Calls it once the list is staged. */
function onceStaged(then: () => Promise<unknown>): Connect {
	return async (target, dependencies) => {
		const connection = await connect(target, dependencies);
		const { ext, ...capabilities } = await connection.api.capabilities();
		const { campaigns } = ext;
		if (campaigns === undefined) throw new Error('the engine has campaigns');
		const observed: typeof campaigns = {
			...campaigns,
			addList: async (...words) => {
				const ack = await campaigns.addList(...words);
				if (!ack.is_partial) await then();
				return ack;
			},
		};
		const api = {
			...connection.api,
			capabilities: async () => ({ ...capabilities, ext: { ...ext, campaigns: observed } }),
		};
		return { ...connection, api };
	};
}

const look =
	/hint: mailctl .*campaigns get X shows how far it is, mailctl .*campaigns cancel X drops what is not sent\n$/;

describe('a send beside one that releases the same campaign', () => {
	it('cancels nothing of it where its content is refused, and says that it was released', async () => {
		const project = await start();
		const run = await project.run([...toCities, '--yes', '--expect-count', '3'], {
			connect: onceStaged(() => releaseElsewhere(project, toCities, '--skip-invalid', '--expect-count', '2')),
		});
		expect(await messagesOf(project)).toMatchObject({ messages: { queued: 2 } });
		expect(run).toMatchObject({ code: 5, stderr: expect.stringMatching(look) });
		expect(run.stderr).toContain('error: the campaign "X" was released by another command meanwhile\n');
		expect(run.stderr).toContain('no value for #city#');
		expect(run.stderr).not.toContain('nothing was');
	});

	it('says that it was released where another count was expected', async () => {
		const project = await start();
		const run = await project.run([...plain, '--yes', '--expect-count', '7'], {
			connect: onceStaged(() => releaseElsewhere(project, plain, '--expect-count', '3')),
		});
		expect(run).toMatchObject({ code: 5, stderr: expect.stringMatching(look) });
		expect(run.stderr).toContain('error: the campaign "X" was released by another command meanwhile\n');
		expect(await messagesOf(project)).toMatchObject({ messages: { queued: 3 } });
	});

	it('cancels nothing of it where a person says no', async () => {
		const project = await start();
		const answer = async () => {
			await releaseElsewhere(project, plain, '--expect-count', '3');
			return 'n';
		};
		const run = await typing([['Go on?', answer]], (options) => project.run(plain, options), 200);
		expect(await messagesOf(project)).toMatchObject({ messages: { queued: 3 } });
		expect(run.code).toBe(130);
		expect(run.stderr).toContain(
			'declined, but the campaign "X" was released by another command meanwhile\n',
		);
		expect(run.stderr).toContain('campaigns get X shows how far it is');
		expect(run.stderr).not.toContain('nothing was');
	});

	it('cancels nothing of it where it is interrupted', async () => {
		const project = await start();
		const interrupts = new AbortController();
		const run = await project.run([...plain, '--yes', '--expect-count', '3'], {
			interrupts: interrupts.signal,
			connect: onceStaged(async () => {
				await releaseElsewhere(project, plain, '--expect-count', '3');
				interrupts.abort(new Interrupted('SIGINT'));
			}),
		});
		expect(await messagesOf(project)).toMatchObject({ messages: { queued: 3 } });
		expect(run.code).toBe(130);
		expect(run.stderr).toContain('the campaign "X" was released by another command meanwhile');
		expect(run.stderr).not.toContain('nothing was');
	});
});
