import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { cli } from '../../support/cli.js';
import { makeProject, type Project } from '../../support/project.js';

describe('mailctl senders', () => {
	let project: Project;
	const now = ['--now', '2026-11-01T10:00:00Z'];
	const news = {
		id: 1,
		full_name: '',
		from_email: 'news@example.com',
		reply_to_email: '',
		is_verified: true,
		date_created: '2026-11-01T10:00:00.000000',
	};

	beforeEach(async () => {
		project = await makeProject({ sender: false });
		await project.json(['senders', 'add', 'news@example.com', ...now]);
	});

	it('lists and adds senders, and removes a sender by id or by address in any letter case', async () => {
		expect(await project.json(['senders', 'list'])).toEqual([news]);
		expect((await project.run(['senders', 'add', 'b@example.com', '-q'])).stdout).toBe('2\n');
		expect(await project.json(['senders', 'remove', 'NEWS@example.com', '-y'])).toEqual({ deleted: [1] });
		expect(await project.json(['senders', 'rm', '2', '-y'])).toEqual({ deleted: [2] });
		expect(await project.json(['senders', 'list'])).toEqual([]);
	});

	it.each([
		[2, 'bad', 'error: "bad" is not an e-mail address: it has no @\n'],
		[
			2,
			'News <n@example.com>',
			'error: "News <n@example.com>" is not an e-mail address: give only the address itself: n@example.com\n',
		],
		[
			2,
			'n@example.com\r\nBcc: x@example.com',
			'error: "n@example.com\\r\\nBcc: x@example.com" is not an e-mail address: it has an invisible character, U+000D\n',
		],
		[5, 'news@example.com', 'error: from_email: This field must be unique. (news@example.com)\n'],
	])('exits with %i if the user adds %j, and quotes this address', async (code, address, stderr) => {
		expect(await project.run(['senders', 'add', address])).toEqual({ code, stdout: '', stderr });
		expect((await project.run(['senders', 'add', address, '-n'])).code).toBe(code);
		expect(await project.json(['senders', 'list'])).toEqual([news]);
	});

	it('removes a sender only after confirmation, and exits with 3 for an unknown one', async () => {
		expect(await project.run(['senders', 'remove', 'news@example.com'])).toEqual({
			code: 2,
			stdout: '',
			stderr: 'error: this will remove the sender news@example.com\nhint: add --yes to agree\n',
		});
		expect(await project.run(['senders', 'remove', 'new@example.com', '-y'])).toEqual({
			code: 3,
			stdout: '',
			stderr: 'error: sender "new@example.com" not found\nhint: did you mean news@example.com?\n',
		});
	});

	it('changes nothing in a dry run', async () => {
		expect(await project.json(['senders', 'add', 'b@example.com', '-n'])).toEqual({
			dry_run: true,
			create: { from_email: 'b@example.com' },
		});
		expect(await project.json(['senders', 'remove', '1', '-n'])).toEqual({ dry_run: true, delete: [1] });
		expect(await project.json(['senders', 'list'])).toEqual([news]);
	});

	it.each([
		['senders', 'list'],
		['senders', 'add', 'a@example.com'],
		['senders', 'remove', 'a@example.com', '-y'],
		['send', '--from', 'a@example.com', '--to', 'b@example.com', '--subject', 'S', '--text', 'T', '-n'],
	])('exits with 2 if a service cannot list senders (send -n with 0): %s %s %s %s', async (...words) => {
		const service = createServer((_, response) => response.writeHead(404).end('<h1>Not Found</h1>'));
		await new Promise<void>((listening) => service.listen(0, '127.0.0.1', listening));
		const at = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
		const { code, stderr } = await cli(['--base-url', at, '--retries', '0', ...words], {
			env: { HOME: project.folder, MAILCTL_TOKEN: 't' },
		});
		service.close();
		// A dry run of `send` does not ask another service for its senders.
		if (words[0] === 'send') expect(code).toBe(0);
		else expect([code, stderr]).toEqual([2, 'error: this service does not list senders\n']);
	});
});
