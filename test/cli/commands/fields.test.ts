import { beforeEach, describe, expect, it } from 'vitest';
import { makeProject, type Project } from '../../support/project.js';

describe('mailctl fields', () => {
	let project: Project;
	const now = ['--now', '2026-11-01T10:00:00Z'];
	const city = { id: 1, variable: 'city', name: 'City', date_created: '2026-11-01T10:00:00.000000' };

	beforeEach(async () => {
		project = await makeProject();
		await project.json(['fields', 'create', '--variable', 'city', '--name', 'City', ...now]);
	});

	const holders = async (...emails: string[]) => {
		await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		for (const email of emails)
			await project.json(['subscribers', 'create', '-l', '1', '--email', email, '--meta', 'city=Oslo']);
	};

	it('renames a field, or a variable that no subscriber uses, without confirmation', async () => {
		expect(await project.json(['fields', 'update', 'city', '--name', 'Town'])).toEqual({
			...city,
			name: 'Town',
		});
		expect(await project.json(['fields', 'update', 'city', '--variable', 'town'])).toEqual({
			...city,
			name: 'Town',
			variable: 'town',
		});
	});

	it('rejects a variable with a space, and update --replace without a variable', async () => {
		const named = await project.run(['fields', 'create', '--variable', 'my city', '--name', 'X']);
		expect(named.stderr).toContain('hint: use letters A to Z, digits (not first) and _');
		const { code, stderr } = await project.run(['fields', 'update', 'city', '--name', 'X', '--replace']);
		expect({ code, stderr }).toEqual({ code: 5, stderr: 'error: variable: This field is required.\n' });
	});

	it('needs --confirm VARIABLE to rename a variable that subscribers use', async () => {
		await holders('a@example.com', 'b@example.com');
		const rename = ['fields', 'update', 'city', '--variable', 'town'];
		expect(await project.run([...rename, '-y'])).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: this will rename city to town (2 subscribers have it)\nhint: add --confirm city to agree\n',
		});
		expect((await project.run([...rename, '--confirm', 'town'])).code).toBe(2);
		expect((await project.run([...rename, '--confirm', 'city'])).code).toBe(0);
		expect(await project.json(['subscribers', 'get', '1', '-l', '1', '--fields', 'meta'])).toEqual({
			meta: { town: 'Oslo' },
		});
	});

	it('needs --confirm VARIABLE, even with --yes, to delete a field that subscribers use', async () => {
		await holders('a@example.com');
		const refused = await project.run(['fields', 'delete', 'city', '-y']);
		expect(refused).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: this will delete the field city (1 subscriber has it)\nhint: add --confirm city to agree\n',
		});
		expect(await project.json(['fields', 'delete', 'city', '--confirm', 'city'])).toEqual({ deleted: [1] });
		expect(await project.json(['subscribers', 'get', '1', '-l', '1', '--fields', 'meta'])).toEqual({
			meta: {},
		});
	});

	it('deletes an unused field only if --confirm names its variable', async () => {
		expect((await project.run(['fields', 'delete', 'city', '--confirm', 'town'])).code).toBe(2);
		expect(await project.json(['fields', 'delete', 'city', '--confirm', 'city'])).toEqual({ deleted: [1] });
	});
});
