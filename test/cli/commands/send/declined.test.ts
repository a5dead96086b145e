// The last question of `send` is declined or interrupted: the state of the campaign, and the output of the command.
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import type { CliOptions } from '../../../support/cli.js';
import { makeProject, type Project } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';
import { typing } from '../../../support/typing.js';

let project: Project;
let sink: SmtpSink;
beforeEach(async () => {
	sink = await startSmtpSink();
	project = await makeProject({ smtp: sink.port });
	await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
	await project.json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com']);
});
afterEach(() => sink.close());

const mail = ['send', '--from', 'news@example.com', '--list', '1', '--subject', 'S', '--text', 'T'];
const named = [...mail, '--campaign', 'U1'];
const states = async () =>
	((await project.json(['campaigns', 'list'])) as { name: string; state: string }[]).map(
		({ name, state }) => `${name} ${state}`,
	);

/** Stages the campaign with a wrong `--expect-count`, so that it stays staged. */
const stageEarlier = () => project.run([...named, '--yes', '--expect-count', '99']);

type Answer = string | (() => Promise<string>);
const answering = async (words: readonly string[], answer: Answer, options: CliOptions = {}) => {
	const run = (typed: CliOptions) => project.run(words, { ...typed, ...options });
	const { code, stderr } = await typing([['Continue?', answer]], run, 300);
	return { code, said: stripVTControlCharacters(stderr) };
};

describe.each([
	['campaigns resume', ['campaigns', 'resume', 'U1']],
	['the same send', named],
])('a campaign staged earlier and continued by %s', (_, words) => {
	it('stays staged if the user declines', async () => {
		await stageEarlier();
		const { code, said } = await answering(words, 'n');
		expect(await states()).toEqual(['U1 staged']);
		expect(code).toBe(130);
		expect(said).toMatch(/declined, nothing was sent\nhint: mailctl .*campaigns resume U1 continues\n$/);
	});

	it('stays staged if SIGTERM stops the command', async () => {
		await stageEarlier();
		const interrupts = new AbortController();
		const answer = async () => {
			interrupts.abort(new Interrupted('SIGTERM'));
			return '';
		};
		const { code, said } = await answering(words, answer, { interrupts: interrupts.signal });
		expect(await states()).toEqual(['U1 staged']);
		expect(code).toBe(143);
		expect(said).toMatch(/hint: nothing was sent; mailctl .*campaigns resume U1 continues/);
	});
});

describe('a campaign that this run staged', () => {
	it.each([
		['with --campaign', named],
		['without --campaign', mail],
	])('is dropped if the user declines (%s)', async (_, words) => {
		const { code, said } = await answering(words, 'n');
		expect([code, await states()]).toEqual([130, []]);
		expect(said).toMatch(/declined, nothing was changed\n$/);
	});

	it.each([
		['with --campaign', named, 'U1'],
		['without --campaign', mail, 's-2026-11-01'],
	])('is dropped if SIGTERM stops the command (%s)', async (_, words, name) => {
		const interrupts = new AbortController();
		const answer = async () => {
			interrupts.abort(new Interrupted('SIGTERM'));
			return '';
		};
		const at = [...words, '--now', '2026-11-01T10:00:00Z'];
		const { code, said } = await answering(at, answer, { interrupts: interrupts.signal });
		expect([code, await states()]).toEqual([143, []]);
		expect(said).toContain(`hint: nothing was sent; the campaign "${name}" was deleted\n`);
	});
});
