import { describe, expect, it } from 'vitest';
import { campaignName, messageUuid, newUuid } from '../../../src/engine/rules/campaign-rows.js';

const noon = Date.UTC(2026, 2, 10, 12) * 1000;

describe('a new id', () => {
	it('is a UUID of version 7, sorted by time', () => {
		const ids = [0, 1, 2, 60_000, 86_400_000].map((ms) => newUuid(noon + ms * 1000));
		for (const id of ids)
			expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
		expect([...ids].sort()).toEqual(ids);
		expect(Number.parseInt((ids[0] ?? '').replace('-', '').slice(0, 12), 16) * 1000).toBe(noon);
	});
});

describe('the id of a campaign’s message', () => {
	const campaign = newUuid(noon);
	const address = (at: number) => `p${at}@example.org`;

	it('is a UUID of version 8 that starts like the campaign’s id and depends on the address', () => {
		const ids = Array.from({ length: 1000 }, (_, at) => messageUuid(campaign, address(at)));
		for (const id of ids)
			expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
		expect(new Set(ids.map((id) => id.slice(0, 8)))).toEqual(new Set([campaign.slice(0, 8)]));
		expect(new Set(ids).size).toBe(1000);
		expect(messageUuid(campaign, address(0))).toBe(ids[0]);
	});
});

it.each([
	['Hallo #vorname|Freund#, Neues im Mai', 'hallo-neues-im-mai-2026-11-23'],
	['News for #city#', 'news-for-2026-11-23'],
	['#name#', 'campaign-2026-11-23'],
	['Nr. #1 of 2#', 'nr-1-of-2-2026-11-23'],
])('the name of a campaign is made from its subject without variables: "%s"', (subject, name) => {
	expect(campaignName(subject, '2026-11-23')).toBe(name);
});
