import { beforeEach, describe, expect, it } from 'vitest';
import { errorOf, makeProject, type Project } from '../../support/project.js';

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

	it('are listed and shown as the wire has them', async () => {
		expect(await project.json(['fields', 'list'])).toEqual([city]);
		expect(await project.json(['fields', 'get', 'city'])).toEqual(city);
		expect(await project.json(['fields', 'get', '1'])).toEqual(city);
		expect((await project.run(['fields', 'ls'])).stdout).toBe('1\tcity\tCity\n');
	});

	it('are created, with -q as the id alone', async () => {
		const { code, stdout, stderr } = await project.run([
			...['fields', 'create', '--variable', 'plan', '--name', 'Plan', '-q'],
		]);
		expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '2\n', stderr: '' });
	});

	it.each([
		['city', 'error: variable: This field must be unique. (city)\nhint: mailctl --db DB fields list\n'],
		[
			'2x',
			'error: variable: This value does not match the required pattern. (2x)\n' +
				'hint: a letter or _, then letters, digits and _, at most 64 in all: city, first_name\n',
		],
		[
			'email',
			'error: variable: "email" is a reserved variable name.\n' +
				'hint: a letter or _, then letters, digits and _, at most 64 in all: city, first_name\n',
		],
	])('refuse the variable %s, naming it and the way out', async (variable, stderr) => {
		const result = await project.run(['fields', 'create', '--variable', variable, '--name', 'X']);
		expect(result).toEqual({ code: 5, stdout: '', stderr: stderr.replace('DB', project.db) });
		expect(await project.json(['fields', 'list'])).toEqual([city]);
	});

	it('say a refusal as one JSON line', async () => {
		const result = await project.run(['fields', 'create', '--variable', 'city', '--name', 'X', '-o', 'json']);
		expect(result.stdout).toBe('');
		expect(errorOf(result)).toEqual({
			code: 'invalid',
			exit_code: 5,
			message: 'variable: This field must be unique. (city)',
			http: null,
			details: [{ path: 'variable', code: 'unique', message: 'This field must be unique. (city)' }],
			hint: `mailctl --db ${project.db} fields list`,
			retryable: false,
		});
	});

	it('that are unknown are exit 3 with a near one', async () => {
		expect(await project.run(['fields', 'get', 'cty'])).toEqual({
			code: 3,
			stdout: '',
			stderr: 'error: field cty not found\nhint: did you mean city?\n',
		});
		expect((await project.run(['fields', 'delete', 'nope', '-y'])).code).toBe(3);
	});

	it('change their name without consent, their variable too while nobody holds it', async () => {
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

	it('refuse an update of nothing', async () => {
		expect(await project.run(['fields', 'update', 'city'])).toEqual({
			code: 2,
			stdout: '',
			stderr: 'error: nothing to change: give one of --variable, --name\n',
		});
	});

	it('replace wants both values', async () => {
		const { code, stderr } = await project.run(['fields', 'update', 'city', '--name', 'X', '--replace']);
		expect({ code, stderr }).toEqual({ code: 5, stderr: 'error: variable: This field is required.\n' });
	});

	it('held by subscribers are renamed with --confirm VARIABLE only', async () => {
		await holders('a@example.com', 'b@example.com');
		const rename = ['fields', 'update', 'city', '--variable', 'town'];
		expect(await project.run([...rename, '-y'])).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: this will rename city to town, held by 2 subscribers\nhint: add --confirm city to agree\n',
		});
		expect((await project.run([...rename, '--confirm', 'town'])).code).toBe(2);
		expect((await project.run([...rename, '--confirm', 'city'])).code).toBe(0);
		expect(await project.json(['subscribers', 'get', '1', '-l', '1', '--fields', 'meta'])).toEqual({
			meta: { town: 'Oslo' },
		});
	});

	it('held by subscribers are deleted with --confirm VARIABLE only', async () => {
		await holders('a@example.com');
		const refused = await project.run(['fields', 'delete', 'city', '-y']);
		expect(refused).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: this will delete the field city, held by 1 subscriber\nhint: add --confirm city to agree\n',
		});
		expect(await project.json(['fields', 'delete', 'city', '--confirm', 'city'])).toEqual({ deleted: [1] });
		expect(await project.json(['subscribers', 'get', '1', '-l', '1', '--fields', 'meta'])).toEqual({
			meta: {},
		});
	});

	it('held by nobody are deleted with -y', async () => {
		expect((await project.run(['fields', 'delete', 'city'])).code).toBe(2);
		expect(await project.json(['fields', 'rm', '1', '-y'])).toEqual({ deleted: [1] });
	});

	it('held by nobody are deleted with --confirm VARIABLE as well, and only with the right one', async () => {
		expect((await project.run(['fields', 'delete', 'city', '--confirm', 'town'])).code).toBe(2);
		expect(await project.json(['fields', 'delete', 'city', '--confirm', 'city'])).toEqual({ deleted: [1] });
	});

	it('stay as they are in a dry run', async () => {
		await holders('a@example.com');
		const plans = [
			await project.json(['fields', 'create', '--variable', 'x', '--name', 'X', '-n']),
			await project.json(['fields', 'update', 'city', '--variable', 'town', '-n']),
			await project.json(['fields', 'delete', 'city', '-n']),
		];
		expect(plans).toEqual([
			{ dry_run: true, create: { variable: 'x', name: 'X' } },
			{ dry_run: true, update: 1, with: { variable: 'town' } },
			{ dry_run: true, delete: [1] },
		]);
		expect(await project.json(['fields', 'list'])).toEqual([city]);
	});
});
