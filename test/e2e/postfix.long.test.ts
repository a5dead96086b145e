// A real Postfix that refuses at RCPT, and one that greylists.
import { readdir, readFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { noPostfix, type Postfix, startPostfix } from '../support/postfix.js';
import { makeProject, type Project } from '../support/project.js';
import { freePort } from '../support/refusing-server.js';

describe.skipIf(noPostfix !== null)(
	`a message to Postfix${noPostfix === null ? '' : ` (${noPostfix})`}`,
	() => {
		let postfix: Postfix | null = null;
		let policy: Server | null = null;
		let project: Project;

		beforeAll(async () => {
			const port = await freePort();
			policy = await startGreylisting('bob@example.net');
			const { port: policyPort } = addressOf(policy);
			postfix = await startPostfix({
				port,
				settings: (folder) => [
					'virtual_mailbox_domains = example.net',
					'virtual_mailbox_maps = inline:{{ann@example.net=ann/} {bob@example.net=bob/}}',
					`virtual_mailbox_base = ${folder}/mail`,
					'virtual_uid_maps = static:65534',
					'virtual_gid_maps = static:65534',
					`smtpd_recipient_restrictions = reject_unlisted_recipient, check_policy_service inet:127.0.0.1:${policyPort}`,
				],
			});
			project = await makeProject({ smtp: port });
			await project.json(['lists', 'create', '--name', 'News', '--email-reason', 'You asked for it']);
			for (const name of ['ann', 'bob', 'gone'])
				await project.json(['subscribers', 'create', '-l', 'News', '--email', `${name}@example.net`]);
		});
		afterAll(async () => {
			await postfix?.stop();
			policy?.close();
		});

		const mails = async (mailbox: string): Promise<string[]> => {
			const folder = join(postfix?.folder ?? '', 'mail', mailbox, 'new');
			const names = await readdir(folder).catch(() => []);
			return Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
		};
		const send = async (...words: string[]) => {
			const base = ['send', '--from', 'news@example.com', '--subject', 'Hello', '--text', 'Hi'];
			const { code } = await project.run([...base, ...words]);
			return code;
		};
		const messageTo = async (to: string) => {
			const [message] = (await project.json(['messages', 'list', '--to', to])) as { id: string }[];
			return (await project.json(['messages', 'get', message?.id ?? ''])) as {
				id: string;
				due_at: string;
			};
		};

		it('arrives', async () => {
			expect(await send('--to', 'ann@example.net')).toBe(0);
			await eventually(async () => expect(await mails('ann')).toHaveLength(1));
			const message = await messageTo('ann@example.net');
			expect(message).toMatchObject({ state: 'sent', delivery_attempts: [{ phase: 'answer', code: 250 }] });
			expect((await mails('ann'))[0]).toContain(`Message-ID: <${message.id}@example.com>`);
		});

		it('that it refuses at RCPT is a hard bounce at once, and the address gets no more', async () => {
			expect(await send('--to', 'gone@example.net')).toBe(9);
			expect(await messageTo('gone@example.net')).toMatchObject({
				state: 'bounced',
				attempts: 1,
				delivery_attempts: [
					{
						number: 1,
						outcome: 'bounced',
						phase: 'rcpt',
						code: 550,
						enhanced: '5.1.1',
						text: expect.stringContaining('User unknown'),
					},
				],
			});
			expect(await project.json(['subscribers', 'get', '-l', 'News', 'gone@example.net'])).toMatchObject({
				is_active: false,
				disable_reason: 'HARDBOUNCED',
			});
			const report = (await project.json(['report'])) as { total: object };
			expect(report.total).toMatchObject({ sent: 1, hardbounced_percent: 50 });
			expect(
				await project.json(
					['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--to', 'gone@example.net'],
					{ code: 9 },
				),
			).toMatchObject({ messages: [] });
		});

		it('that it greylists is deferred, and sent on the next attempt', async () => {
			expect(await send('--to', 'bob@example.net')).toBe(0);
			const deferred = await messageTo('bob@example.net');
			expect(deferred).toMatchObject({
				state: 'deferred',
				delivery_attempts: [{ outcome: 'deferred', phase: 'rcpt', code: 450, enhanced: '4.2.0' }],
			});
			expect(await project.json(['worker', '--drain'], { code: 14 })).toMatchObject({ sent: 0, deferred: 0 });
			const due = new Date(Date.parse(`${deferred.due_at}Z`) + 1_000).toISOString();
			expect(await project.json(['worker', '--drain', '--now', due])).toMatchObject({ sent: 1 });
			expect(await messageTo('bob@example.net')).toMatchObject({
				state: 'sent',
				delivery_attempts: [{ outcome: 'deferred' }, { number: 2, outcome: 'sent', code: 250 }],
			});
			await eventually(async () => expect(await mails('bob')).toHaveLength(1));
		});
	},
);

/** Postfix's policy delegation: attributes up to an empty line, one action back. The first try is put off. */
function startGreylisting(address: string): Promise<Server> {
	let isKnown = false;
	const decide = (asked: string) => {
		if (!asked.includes(`recipient=${address}\n`) || isKnown) return 'DUNNO';
		isKnown = true;
		return '450 4.2.0 Greylisted, come back later';
	};
	return listening(
		createServer((socket: Socket) => {
			let asked = '';
			socket.setEncoding('utf8');
			socket.on('error', () => undefined);
			socket.on('data', (chunk: string) => {
				asked += chunk;
				if (!asked.endsWith('\n\n')) return;
				socket.write(`action=${decide(asked)}\n\n`);
				asked = '';
			});
		}),
	);
}

function listening(server: Server): Promise<Server> {
	return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

function addressOf(server: Server): { port: number } {
	const address = server.address();
	if (address === null || typeof address === 'string') throw new Error('it does not listen');
	return address;
}
