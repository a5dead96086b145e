import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { cli } from '../../../support/cli.js';
import { makeProject, type Project } from '../../../support/project.js';

let project: Project;
beforeEach(async () => {
	// Nothing listens on port 1, so a send that the profile allows exits with 14.
	project = await makeProject({ smtp: 1 });
	const profile = { db: project.db, allowRecipients: ['*@example.com', 'me@*'] };
	await mkdir(join(project.folder, '.config/mailctl'), { recursive: true, mode: 0o700 });
	await writeFile(
		join(project.folder, '.config/mailctl/config.json'),
		JSON.stringify({ profiles: { trial: profile } }),
		{ mode: 0o600 },
	);
});

const send = (...words: string[]) =>
	cli(['-p', 'trial', 'send', '--from', 'news@example.com', '--subject', 's', '--text', 't', ...words], {
		env: { HOME: project.folder },
	});

it('send rejects a recipient that matches no pattern of the profile', async () => {
	for (const words of [
		['--to', 'ann@example.com', '--to', 'bo@example.org'],
		['--to', 'a@example.com', '--bcc', 'bo@example.org'],
	]) {
		const { code, stderr } = await send(...words);
		const told = /this profile may not send to bo@example\.org; nothing was sent\nhint: .* permits only /;
		expect([code, stderr]).toEqual([2, expect.stringMatching(told)]);
	}
	expect(await project.json(['messages', 'list'])).toEqual([]);
});

it('send ignores upper and lower case when it compares a recipient with a pattern', async () => {
	expect((await send('--to', 'ANN@Example.COM', '--to', 'me@elsewhere.org')).code).toBe(14);
});

it('a pattern for example.com does not match example.com.evil.org', async () => {
	expect((await send('--to', 'ann@example.com.evil.org')).code).toBe(2);
});

it('the patterns of the profile apply to every subscriber of the list', async () => {
	await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
	await project.json(['subscribers', 'create', '-l', 'L', '--email', 'ann@example.com']);
	expect((await send('--list', 'L', '--yes', '--expect-count', '1')).code).toBe(14);
	await project.json(['subscribers', 'create', '-l', 'L', '--email', 'bo@example.org']);
	const { code, stderr } = await send('--list', 'L', '--yes', '--expect-count', '2');
	expect([code, stderr]).toEqual([2, expect.stringContaining('bo@example.org')]);
});

it('the patterns of the profile apply to every row of a table and every recipient of a request, including Bcc', async () => {
	const people = await project.file('people.csv', 'email\nann@example.com\nbo@example.org\n');
	const request = {
		from: 'news@example.com',
		to: ['a@example.com'],
		bcc: ['bo@example.org'],
		subject: 's',
		text_body: 't',
	};
	const requests = await project.file('requests.ndjson', JSON.stringify(request));
	const consent = ['--yes', '--expect-count', '2'];
	const batch = ['-p', 'trial', 'send', '--batch', requests, ...consent];
	for (const more of [[], ['--dry-run']]) {
		const runs = [
			await send('--csv', people, ...consent, ...more),
			await cli([...batch, ...more], { env: { HOME: project.folder } }),
		];
		for (const { code, stderr } of runs)
			expect([code, stderr]).toEqual([2, expect.stringContaining('may not send to bo@example.org')]);
	}
	expect(await project.json(['messages', 'list'])).toEqual([]);
});

it('campaigns resume rejects a recipient that matches no pattern, even if send ran without a profile', async () => {
	const people = await project.file('people.csv', 'email\nann@example.com\nbo@example.org\n');
	const words = ['send', '--from', 'news@example.com', '--subject', 's', '--text', 't', '--csv', people];
	await project.run([...words, '--campaign', 'j', '--yes', '--expect-count', '9']);
	const { code, stderr } = await cli(
		['-p', 'trial', 'campaigns', 'resume', 'j', '--yes', '--expect-count', '2'],
		{
			env: { HOME: project.folder },
		},
	);
	expect([code, stderr]).toEqual([2, expect.stringContaining('may not send to bo@example.org')]);
});
