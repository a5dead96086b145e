import { beforeEach, describe, expect, it } from 'vitest';
import type { Micros } from '../../../src/api/datetime.js';
import type { ReportedAddress, ReturnedReport } from '../../../src/engine/rules/outcomes.js';
import type { Submission } from '../../../src/store/campaigns.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	day,
	deliver,
	figures,
	fixedClock,
	lease,
	newList,
	newSubscriber,
	noon,
	type OpenEmpty,
	recordOf,
	send,
	stateOf,
	verify,
} from './fixture.js';

let mails = 0;

function failed(address: string, more: Partial<ReportedAddress> = {}): ReportedAddress {
	return { addresses: [address], hard: true, smtp_code: '550', diagnostic: '550 5.1.1 unknown', ...more };
}

function report(
	message: string,
	recipients: readonly ReportedAddress[],
	more: Partial<ReturnedReport> = {},
): ReturnedReport {
	mails += 1;
	const sha256 = mails.toString(16).padStart(64, '0');
	return { sha256, at: noon, message, matched: 'return_path', kind: 'bounce', recipients, ...more };
}

export function describeBounces(open: OpenEmpty): void {
	describe('a bounce or complaint', () => {
		let store: Store;
		let list_id: number;
		beforeEach(async () => {
			store = await open(fixedClock);
			list_id = await newList(store);
			await verify(store);
			return () => store.close();
		});
		const subscriber = (email: string) => newSubscriber(store, list_id, email);
		const activity = async (id: number) => {
			const found = await store.reads.getSubscriber({ list_id, id });
			return [found?.is_active, found?.disable_reason];
		};
		const sent = async (to: string, more: Partial<Submission> = {}, at: Micros = noon) => {
			await send(store, [to], { ...more, now: at });
			return deliver(store, { kind: 'sent', reply: accepted250 }, at);
		};
		const copied = { cc: ['Bob <bob@example.org>'], bcc: ['eve@example.org'] };
		const withCopies = {
			envelope: { from: 'Desk <desk@example.org>', reply_to: [], headers: {}, ...copied },
		};
		const suppressions = async () => (await store.reads.status()).suppressions;

		it('that is a hard bounce changes the message, daily statistics, suppressions and subscriber', async () => {
			const { id } = await subscriber('ann@example.org');
			const message = await sent('ann@example.org');
			const outcome = await store.writes.recordReport(report(message, [failed('ann@example.org')]));
			expect(outcome).toEqual({ kind: 'recorded', effect: 'hard_bounce', address: 'ann@example.org' });
			expect(await stateOf(store, message)).toBe('bounced');
			expect((await store.reads.getMessage({ id: message }))?.message.last_reply).toBe('550 5.1.1 unknown');
			expect(await activity(id)).toEqual([false, 'HARDBOUNCED']);
			expect(await suppressions()).toBe(1);
			expect(await figures(store)).toContain('2026-03-10 HARDBOUNCED 1');
			expect((await send(store, ['ann@example.org'])).answer.messages_created).toBe(0);
		});

		it('counts once, even if a second report about the message arrives', async () => {
			const message = await sent('ann@example.org');
			const first = report(message, [failed('ann@example.org')]);
			await store.writes.recordReport(first);
			expect(await store.writes.recordReport(first)).toEqual({ kind: 'known' });
			const other = report(message, [failed('ann@example.org')], { at: noon + day });
			expect(await store.writes.recordReport(other)).toEqual({ kind: 'known' });
			expect(await figures(store)).toContain('2026-03-10 HARDBOUNCED 1');
		});

		it('is not recorded when foreseeReport predicts its effect', async () => {
			const { id } = await subscriber('ann@example.org');
			const message = await sent('ann@example.org');
			const hard = report(message, [failed('ann@example.org')]);
			const stranger = report(message, [failed('someone@example.net')], { matched: 'message_id' });
			expect(await store.reads.foreseeReport(stranger)).toEqual({ kind: 'unmatched' });
			for (const _ of [1, 2])
				expect(await store.reads.foreseeReport(hard)).toEqual({
					kind: 'recorded',
					effect: 'hard_bounce',
					address: 'ann@example.org',
				});
			expect(await activity(id)).toEqual([true, null]);
			await store.writes.recordReport(hard);
			expect(await store.reads.foreseeReport(hard)).toEqual({ kind: 'known' });
			const again = report(message, [failed('ann@example.org')]);
			expect(await store.reads.foreseeReport(again)).toEqual({ kind: 'known' });
			const complaint = report(message, [], { kind: 'complaint' });
			expect(await store.reads.foreseeReport(complaint)).toEqual({
				kind: 'recorded',
				effect: 'complaint',
				address: 'ann@example.org',
			});
		});

		it('suppresses each recipient who complains, and does not change the state of the message', async () => {
			const { id } = await subscriber('ann@example.org');
			const message = await sent('ann@example.org', withCopies);
			const complain = (address: string) =>
				store.writes.recordReport(report(message, [failed(address)], { kind: 'complaint' }));
			for (const address of ['bob@example.org', 'ann@example.org'])
				expect(await complain(address)).toEqual({ kind: 'recorded', effect: 'complaint', address });
			expect(await activity(id)).toEqual([false, 'COMPLAINED']);
			expect(await stateOf(store, message)).toBe('sent');
			expect(await complain('ann@example.org')).toEqual({ kind: 'known' });
		});

		it('suppresses only recipients of the message', async () => {
			const victim = await subscriber('victim@example.org');
			const message = await sent('ann@example.org');
			const hostile = report(message, [failed('victim@example.org')], { matched: 'message_id' });
			expect(await store.writes.recordReport(hostile)).toEqual({ kind: 'unmatched' });
			expect(await suppressions()).toBe(0);
			const signed = report(message, [failed('victim@example.org'), failed('other@example.org')]);
			await store.writes.recordReport(signed);
			expect(await activity(victim.id)).toEqual([true, null]);
			const complaint = report(await sent('cid@example.org'), [failed('victim@example.org')], {
				kind: 'complaint',
				matched: 'message_id',
			});
			expect(await store.writes.recordReport(complaint)).toEqual({ kind: 'unmatched' });
			expect((await send(store, ['victim@example.org'])).answer.messages_created).toBe(1);
		});

		it('is hard if it names the recipient’s mailbox at a subdomain, and soft if it names another mailbox or domain', async () => {
			const byHost = async (address: string) =>
				store.writes.recordReport(report(await sent('ann@example.org'), [failed(address)]));
			expect(await byHost('joann@mx1.example.org')).toMatchObject({ effect: 'soft_bounce' });
			expect(await byHost('ann@badexample.org')).toMatchObject({ effect: 'soft_bounce' });
			expect(await byHost('ann@mx1.example.org')).toMatchObject({ effect: 'hard_bounce' });
		});

		it('is soft if only one of two forwarding addresses failed permanently', async () => {
			const message = await sent('ann@example.org');
			const half = [failed('one@example.net'), failed('two@example.net', { hard: false })];
			expect(await store.writes.recordReport(report(message, half))).toMatchObject({ effect: 'soft_bounce' });
			expect(await suppressions()).toBe(0);
		});

		it('for a copy does not change the state of the message', async () => {
			const message = await sent('ann@example.org', withCopies);
			expect(await store.writes.recordReport(report(message, [failed('bob@example.org')]))).toMatchObject({
				effect: 'hard_bounce',
			});
			expect(await stateOf(store, message)).toBe('sent');
			expect((await send(store, ['bob@example.org'])).answer.messages_created).toBe(0);
			expect((await send(store, ['ann@example.org'])).answer.messages_created).toBe(1);
		});

		it('is ignored if the message has several recipients and the bounced address is none of them', async () => {
			const message = await sent('ann@example.org', withCopies);
			const outcome = await store.writes.recordReport(report(message, [failed('someone@example.net')]));
			expect(outcome).toEqual({ kind: 'unmatched' });
		});

		it('has to wait while its message is leased, and is ignored if the message was never sent', async () => {
			await send(store, ['ann@example.org']);
			const [waiting] = (await store.reads.pageMessages({ page: 1, page_size: 1, filter: {} })).results;
			const early = report(waiting?.id ?? '', [failed('ann@example.org')]);
			expect(await store.writes.recordReport(early)).toEqual({ kind: 'unmatched' });
			await lease(store);
			expect(await store.writes.recordReport(early)).toEqual({ kind: 'in_flight' });
			const stranger = report('00000000-0000-4000-8000-ffffffffffff', [failed('ann@example.org')]);
			expect(await store.writes.recordReport(stranger)).toEqual({ kind: 'unmatched' });
		});

		it('records nothing about an erased person', async () => {
			const message = await sent('ann@example.org');
			const fresh = { id: 1, secret: Buffer.alloc(32, 1).toString('base64url') };
			await store.writes.erasePerson({ email_key: 'ann@example.org', fresh, now: noon });
			const late = report(message, [failed('ann@example.org')]);
			expect(await store.writes.recordReport(late)).toEqual({ kind: 'unmatched' });
			expect(await suppressions()).toBe(0);
		});

		it('makes a subscriber inactive after five soft bounces in a row over seven days', async () => {
			const { id } = await subscriber('ann@example.org');
			const bounceAt = async (at: Micros) => {
				const message = await sent('ann@example.org', {}, at);
				await store.writes.recordReport(
					report(message, [failed('ann@example.org', { hard: false })], { at }),
				);
			};
			for (const days of [0, 1, 2, 3, 4, 6]) await bounceAt(noon + days * day);
			expect(await activity(id)).toEqual([true, null]);
			await bounceAt(noon + 7 * day);
			expect(await activity(id)).toEqual([false, 'SOFTBOUNCED']);
			const now = noon + 8 * day;
			recordOf(await store.writes.patchSubscriber({ list_id, id, patch: { is_active: true }, now }));
			await bounceAt(now);
			expect(await activity(id)).toEqual([true, null]);
		});
	});
}
