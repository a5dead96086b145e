import { describe, expect, it } from 'vitest';
import { makeProject } from '../../../support/project.js';

const people = [
	'email,name,is_active,disable_reason,city,meta',
	'ann@example.com,Ann,true,,Oslo,',
	'bob@EXAMPLE.com,Bob,false,UNSUBSCRIBED,,"{""city"":""""}"',
	'carl@example.org,,false,,,"{""age"":7}"',
	'',
].join('\n');

describe('mailctl subscribers stats', () => {
	const prepared = async () => {
		const project = await makeProject();
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		for (const variable of ['city', 'age'])
			await project.json(['fields', 'create', '--variable', variable, '--name', variable]);
		const day = ['--now', '2026-11-20T23:00:00'];
		const path = await project.file('people.csv', people);
		await project.json(['subscribers', 'import', path, '-l', '1', ...day]);
		const late = ['--email', 'new@example.com', '--now', '2026-11-21'];
		await project.json(['subscribers', 'create', '-l', '1', ...late]);
		return project;
	};

	it('prints counts by state, reason, source, day, domain and field as one JSON document', async () => {
		const project = await prepared();
		const stats = await project.json(['subscribers', 'stats', '-l', '1', '--now', '2026-11-21T12:00:00']);
		expect(stats).toMatchObject({
			list_id: 1,
			name: 'Readers',
			total: 4,
			active: 2,
			inactive: 2,
			verified: 0,
			reasons: { UNSUBSCRIBED: 1, none: 1 },
			sources: { IMPORT: 3, API: 1 },
			added: { last_7_days: 4, last_30_days: 4 },
			domains: [
				{ domain: 'example.com', count: 3 },
				{ domain: 'example.org', count: 1 },
			],
			fields: [
				{ variable: 'city', filled: 1 },
				{ variable: 'age', filled: 1 },
			],
		});
		const { added } = stats as { added: { days: { date: string; count: number }[] } };
		expect(added.days).toHaveLength(30);
		expect(added.days.slice(-2)).toEqual([
			{ date: '2026-11-20', count: 3 },
			{ date: '2026-11-21', count: 1 },
		]);
	});
});
