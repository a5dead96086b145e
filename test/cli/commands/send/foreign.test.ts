import { describe, expect, it } from 'vitest';
import type { CampaignResult } from '../../../../src/api/campaigns.js';
import { sayWhyFailed } from '../../../../src/cli/commands/send/foreign.js';
import { hintText, unnamed } from '../../../../src/cli/frame/command-line.js';
import type { CommandContext } from '../../../../src/cli/frame/context.js';

const result = (state: CampaignResult['state'], text: string | null): CampaignResult => ({
	...{ line: 1, to: 'ann@example.com', id: null, attempts: 1 },
	...{ state, code: text === null ? 'refused' : 'invalid', text },
});

/** What is said of a job with these results, two a page. */
async function saidOf(results: readonly CampaignResult[]): Promise<string[]> {
	const said: string[] = [];
	const cx: Pick<CommandContext, 'warn' | 'hint'> = {
		warn: async (text) => void said.push(text),
		hint: async (hint) => void said.push(hintText(hint, unnamed)),
	};
	await sayWhyFailed(
		cx,
		{
			results: async (_id, { after = 0 }) => {
				const next = after + 2 < results.length ? after + 2 : null;
				return { results: results.slice(after, after + 2), next };
			},
		},
		{ id: 'id', campaign: 'november' },
	);
	return said;
}

describe('why messages of a job failed', () => {
	it('is said in the words of the service, with how many', async () => {
		const results = [
			result('sent', null),
			result('failed', 'to: Blocked.'),
			result('failed', 'to: Blocked.'),
			result('failed', null),
		];
		expect(await saidOf(results)).toEqual([
			'the service refused 2 messages: to: Blocked.',
			'the service refused 1 message: refused',
		]);
	});

	it('is cut after three reasons, with where the others are', async () => {
		const said = await saidOf(['a', 'b', 'c', 'd'].map((text) => result('failed', text)));
		expect(said).toEqual([
			'the service refused 1 message: a',
			'the service refused 1 message: b',
			'the service refused 1 message: c',
			'mailctl campaigns resume november --results FILE names every message and its reason',
		]);
	});

	it('is nothing where none failed', async () => {
		expect(await saidOf([result('sent', null)])).toEqual([]);
	});
});
