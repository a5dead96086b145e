import { describe, expect, it } from 'vitest';
import { isOfRun, nameRun } from '../../../src/cli/smoke/records.js';

const at = Date.parse('2026-11-21T08:12:37.987Z') * 1000;
const names = nameRun({ now: () => at }, '3fa9c2');

describe('the names of records that smoke creates', () => {
	it('contain the start time and the id of the run', () => {
		expect(names).toEqual({
			id: '20261121T081237-3fa9c2',
			list: 'mailctl-smoke-20261121T081237-3fa9c2',
			field: 'mailctl_smoke_20261121t081237_3fa9c2',
			webhook: 'https://mailctl-smoke.invalid/mailctl-smoke-20261121T081237-3fa9c2',
			email: '20261121t081237-3fa9c2@example.com',
		});
		expect(`${names.field}_replaced`).toMatch(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/);
	});

	it('are recognized as names of the run even after a check has changed them', () => {
		const known = [
			isOfRun('list', names.list, names.id),
			isOfRun('list', `${names.list}-patched`, null),
			isOfRun('field', `${names.field}_patched`, names.id),
			isOfRun('webhook', `${names.webhook}-replaced`, names.id),
		];
		expect(known).toEqual([true, true, true, true]);
	});

	it.each([
		['list', 'mailctl-smoke-tests'],
		['list', 'mailctl-smoke-20261121T081237-3fa9c2-keep'],
		['field', 'mailctl_smoke_20261121t081237_3fa9c2_metax'],
		['list', 'mailctl-smoke-20261121T081237-3fa9c2 (keep)'],
		['list', `copy of mailctl-smoke-20261121T081237-3fa9c2`],
		['list', 'mailctl-smoke-20261121T081237-3fa9c2\n'],
		['field', 'mailctl_smoke_city'],
		['webhook', 'https://mailctl-smoke.invalid/in'],
		['webhook', 'https://example.com/?mailctl-smoke-20261121T081237-3fa9c2'],
		['list', null],
	] as const)('are not confused with a user’s own %s: %s', (kind, name) => {
		expect(isOfRun(kind, name, null)).toBe(false);
	});

	it('are not recognized as names of another run', () => {
		expect(isOfRun('list', names.list, '20261121T081237-aaaaaa')).toBe(false);
	});
});
