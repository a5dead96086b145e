import { describe, expect, it } from 'vitest';
import { createTally } from '../../../../src/cli/commands/subscribers/stats.js';
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

	it('counts states, reasons, sources, days, domains and fields in one document', async () => {
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

describe('the statistics of a list', () => {
	it('find the largest of many domains in bounded memory', () => {
		const list = {
			id: 1,
			name: 'L',
			email_reason: 'r',
			active_subscribers_count: 0,
			inactive_subscribers_count: 0,
			overall_subscribers_count: 0,
			date_created: '2026-01-01T00:00:00.000000',
		};
		const tally = createTally(list, [], 0);
		const person = {
			...{ id: 1, list_id: 1, name: '', is_active: true, disable_reason: null, is_email_verified: false },
			...{ meta: {}, source: 'API', opt_in_signed: null, date_created: list.date_created },
		};
		for (let at = 0; at < 120_000; at += 1) {
			tally.add({ ...person, email: `a@d${at}.example` });
			if (at % 10 === 0) tally.add({ ...person, email: 'a@large.example' });
		}
		expect(tally.stats().domains[0]).toEqual({ domain: 'large.example', count: 12_000 });
		expect(tally.stats().total).toBe(132_000);
	});
});
