import { beforeEach, describe, expect, it } from 'vitest';
import { errorOf, makeProject, type Project } from '../../../support/project.js';

const ann = 'ann@example.com';

describe('mailctl subscribers erase', () => {
	let project: Project;
	beforeEach(async () => {
		project = await makeProject();
		for (const name of ['Readers', 'Buyers']) {
			await project.json(['lists', 'create', '--name', name, '--email-reason', 'r']);
			await project.json(['subscribers', 'create', '-l', name, '--email', ann]);
		}
		const mail = ['--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--no-wait'];
		await project.run(['send', '--to', ann, ...mail]);
	});
	const erase = (...more: string[]) => ['subscribers', 'erase', 'Ann@Example.com', ...more];
	const consent = ['--confirm', 'Ann@Example.com'];

	it('prints what it will delete, and requires the user to type the address', async () => {
		const { code, stderr } = await project.run(erase('--yes'));
		expect({ code, says: stderr.split('\n')[0] }).toEqual({
			code: 2,
			says: expect.stringMatching(
				/^error: this will erase Ann@Example.com for good: 2 subscribers, 1 message$/,
			),
		});
		expect(await project.json(erase('-n'))).toMatchObject({ dry_run: true, subscribers: 2 });
		expect(await project.json(['subscribers', 'find', ann])).toHaveLength(2);
	});

	it('deletes the person from all lists, and blocks the address until erase --lift', async () => {
		expect(await project.json(erase(...consent))).toMatchObject({
			email: 'Ann@Example.com',
			subscribers: 2,
			suppressions: 0,
		});
		expect(await project.json(['subscribers', 'find', ann])).toEqual([]);
		const refused = await project.run(['subscribers', 'create', '-l', '1', '--email', ann, '-o', 'json']);
		expect({ code: refused.code, error: errorOf(refused) }).toMatchObject({
			code: 5,
			error: {
				hint: `to allow the address again: mailctl --db ${project.db} subscribers erase ${ann} --lift`,
			},
		});
		const path = await project.file('people.csv', `email\n${ann}\nbob@example.com\n`);
		const imported = ['subscribers', 'import', path, '-l', '1'];
		expect(await project.json(imported, { code: 9 })).toMatchObject({ created: 1, rejected: 1 });
		expect(await project.json(erase('--lift', '-y'))).toEqual({ lifted: 'Ann@Example.com' });
		expect((await project.run(erase('--lift', '-y'))).code).toBe(3);
		await project.json(['subscribers', 'create', '-l', '1', '--email', ann]);
	});

	it('accepts an unknown address but rejects an invalid one', async () => {
		const nobody = ['subscribers', 'erase', 'zoe@example.com', '--confirm', 'zoe@example.com'];
		const asked = await project.run(nobody.slice(0, 3));
		expect({ code: asked.code, said: asked.stderr.split('\n')[0] }).toEqual({
			code: 2,
			said: 'error: this will block zoe@example.com, which is unknown here: it cannot be added or imported, and gets no bulk mail',
		});
		const { code, stderr } = await project.run(nobody, { columns: 80 });
		expect(code).toBe(0);
		expect(stderr.replaceAll('\n', ' ')).toContain(
			'blocked zoe@example.com: no subscriber and no message had this address',
		);
		expect(stderr).not.toContain('not erased');
		expect((await project.run(['subscribers', 'erase', 'zoe'])).code).toBe(2);
	});
});
