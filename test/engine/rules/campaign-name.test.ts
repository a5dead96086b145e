import { expect, it } from 'vitest';
import { campaignName } from '../../../src/engine/rules/campaign-rows.js';

it.each([
	['Hallo #vorname|Freund#, Neues im Mai', 'hallo-neues-im-mai-2026-11-23'],
	['News for #city#', 'news-for-2026-11-23'],
	['#name#', 'campaign-2026-11-23'],
	['Nr. #1 of 2#', 'nr-1-of-2-2026-11-23'],
])('a campaign is named after "%s" without variables', (subject, name) => {
	expect(campaignName(subject, '2026-11-23')).toBe(name);
});
