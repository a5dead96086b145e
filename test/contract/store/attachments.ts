import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Attachment } from '../../../src/api/attachments.js';
import type { Store } from '../../../src/store/store.js';
import {
	campaignOf,
	day,
	fixedClock,
	newUuid,
	noon,
	type OpenEmpty,
	plainContent,
	send,
	submissionOf,
	verify,
} from './fixture.js';

export function describeAttachments(open: OpenEmpty): void {
	describe('attachments', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			return () => store.close();
		});
		const shaOf = (text: string) => createHash('sha256').update(text).digest('hex');
		const put = (text: string, now = noon) =>
			store.writes.putAttachment({ sha256: shaOf(text), bytes: Buffer.from(text), now });
		const read = async (text: string) => {
			const bytes = await store.reads.getAttachment({ sha256: shaOf(text) });
			return bytes === null ? null : Buffer.from(bytes).toString();
		};
		const named = (text: string): Attachment => ({
			name: `${text}.txt`,
			type: 'text/plain',
			sha256: shaOf(text),
		});
		const withFiles = (...texts: string[]) => {
			const attachments = texts.map(named);
			return {
				content: { ...plainContent, attachments },
				content_sha256: `content with ${texts.join()}`,
			};
		};
		const isFound = async (text: string, now: number) =>
			(await store.reads.findAttachment({ sha256: shaOf(text), now })) !== null;

		it('are deleted after 24 hours if no content refers to them', async () => {
			await put('named');
			await put('unused');
			await send(store, ['a@example.org'], withFiles('named'));
			await put('later', noon + day);
			expect([await read('named'), await read('unused'), await read('later')]).toEqual([
				'named',
				null,
				'later',
			]);
			expect(await isFound('named', noon + 400 * day)).toBe(true);
		});

		it('exist for another client only after that client uploads the same bytes', async () => {
			const file = { sha256: shaOf('a'), now: noon };
			const bytes = Buffer.from('a');
			const tries = async (seen: object) => {
				const submission = { ...submissionOf(['a@example.org'], withFiles('a')), id: newUuid() };
				const campaign = { ...campaignOf(newUuid(), withFiles('a')), id: newUuid(), is_trial: false };
				return [
					(await store.reads.findAttachment({ ...file, ...seen })) !== null,
					(await store.writes.acceptSubmission({ ...submission, ...seen, key: null })).kind,
					(await store.writes.openCampaign({ ...campaign, ...seen })).kind,
				];
			};
			await store.writes.putAttachment({ ...file, bytes, owner: 'ann' });
			expect(await tries({ only_of: 'ann' })).toEqual([true, 'accepted', 'opened']);
			expect(await tries({ only_of: 'bob' })).toEqual([false, 'refused', 'refused']);
			expect(await tries({})).toEqual([true, 'accepted', 'opened']);
			await store.writes.putAttachment({ ...file, bytes, owner: 'bob' });
			expect(await tries({ only_of: 'bob' })).toEqual([true, 'accepted', 'opened']);
		});

		it('are deleted with the last message that uses them', async () => {
			await put('own');
			await put('shared');
			await send(store, ['ann@example.org'], withFiles('own', 'shared'));
			await send(store, ['bob@example.org'], withFiles('shared'));
			const fresh = { id: 1, secret: Buffer.alloc(32, 7).toString('base64url') };
			await store.writes.erasePerson({ email_key: 'ann@example.org', fresh, now: noon });
			expect([await read('own'), await read('shared')]).toEqual([null, 'shared']);
			await store.writes.erasePerson({ email_key: 'bob@example.org', fresh, now: noon });
			expect(await read('shared')).toBeNull();
		});

		it('are deleted with a campaign that was never released', async () => {
			await put('file');
			const campaign = campaignOf('news', withFiles('file'));
			expect(await store.writes.openCampaign(campaign)).toMatchObject({ kind: 'opened' });
			expect(await store.reads.campaignStatus({ id: campaign.id, now: noon })).toMatchObject({
				attachments: [{ ...named('file'), size: 4 }],
			});
			await store.writes.cancelCampaign({ campaign: campaign.id, forget: true, now: noon });
			expect(await read('file')).toBeNull();
		});

		it('may be missing in a trial campaign, but not in a real one', async () => {
			const campaign = { ...campaignOf('news', withFiles('never')), id: newUuid() };
			expect(await store.writes.openCampaign({ ...campaign, is_trial: true })).toMatchObject({
				kind: 'opened',
			});
			expect(await store.writes.openCampaign(campaign)).toMatchObject({ kind: 'refused' });
		});
	});
}
