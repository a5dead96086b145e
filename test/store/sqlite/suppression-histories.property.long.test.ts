import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DeliveryOutcome } from '../../../src/engine/rules/outcomes.js';
import { openStore } from '../../../src/store/open.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	busy451,
	campaignOf,
	day,
	eventOf,
	fixedClock,
	newList,
	newUuid,
	noon,
	recipientOf,
	send,
	unknown550,
	verify,
} from '../../contract/store/fixture.js';
import {
	type ModelMessage,
	type ModelRow,
	type Reason,
	SuppressionModel,
} from '../../support/suppression-model.js';

const histories = 400;

const address = fc.constantFrom('ann', 'bob', 'eve');
const list = fc.nat({ max: 1 });
const reason = fc.constantFrom<Reason>('COMPLAINED', 'HARDBOUNCED', 'UNSUBSCRIBED', 'SOFTBOUNCED', 'MANUAL');
const text = fc.constantFrom('UNSUBSCRIBED', 'unsubscribed', 'HardBounced', 'COMPLAINED', 'moved away');
const days = fc.integer({ min: 1, max: 9 });
const message = fc.nat({ max: 9 });
const inList = { list, address };
const kind = <K extends string>(name: K) => fc.constant(name);
const step = fc.oneof(
	fc.record({ kind: kind('send'), address, list: fc.option(list), isBulk: fc.boolean() }),
	fc.record({ kind: kind('send'), address, list: fc.option(list), isBulk: fc.constant(true) }),
	fc.record({ kind: kind('deliver'), message, outcome: fc.constantFrom('sent', 'failed', 'bounced') }),
	fc.record({ kind: kind('deliver'), message, outcome: fc.constant('sent' as const) }),
	fc.record({
		kind: kind('failOften'),
		address,
		times: fc.integer({ min: 3, max: 6 }),
		everyDays: fc.nat(3),
	}),
	fc.record({ kind: kind('unsubscribe'), message, isFromAll: fc.constant(false) }),
	fc.record({ kind: kind('unsubscribe'), message, isFromAll: fc.boolean() }),
	fc.record({ kind: kind('report'), message, named: address }),
	fc.record({ kind: kind('complain'), message }),
	fc.record({ kind: kind('create'), ...inList }),
	fc.record({ kind: kind('create'), ...inList }),
	fc.record({ kind: kind('delete'), ...inList }),
	fc.record({ kind: kind('activate'), ...inList }),
	fc.record({ kind: kind('deactivate'), ...inList }),
	fc.record({ kind: kind('import'), ...inList, reactivate: fc.boolean(), reason: fc.option(text) }),
	fc.record({ kind: kind('move'), ...inList, to: address }),
	fc.record({ kind: kind('recreate'), list }),
	fc.record({ kind: kind('add'), address, reason, days: fc.option(days), list: fc.option(list) }),
	fc.record({ kind: kind('remove'), address, reason: fc.option(reason), list: fc.option(list) }),
	fc.record({ kind: kind('mail'), list }),
	fc.record({ kind: kind('mailTable'), list: fc.option(list) }),
	fc.record({ kind: kind('scope'), scope: fc.constantFrom('list', 'all') }),
	fc.record({ kind: kind('erase'), address, isLifted: fc.boolean() }),
	fc.record({ kind: kind('wait'), days }),
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** Before bulk mail is sent, its subscriber changes the address and is then deleted. The mail is canceled. */
const movedAndDeleted: Step[] = [
	{ kind: 'create', list: 0, address: 'eve' },
	{ kind: 'send', address: 'eve', list: null, isBulk: true },
	{ kind: 'move', list: 0, address: 'eve', to: 'bob' },
	{ kind: 'delete', list: 0, address: 'bob' },
	{ kind: 'deliver', message: 0, outcome: 'sent' },
];

const replies: Readonly<Record<'sent' | 'failed' | 'bounced', DeliveryOutcome>> = {
	sent: { kind: 'sent', reply: accepted250 },
	failed: { kind: 'failed', reply: busy451 },
	bounced: { kind: 'bounced', reply: unknown550, suppress: true },
};

describe('any history of suppressions', () => {
	let store: Store;
	let histories_begun = 0;
	beforeAll(async () => {
		store = await openStore(':memory:', { clock: fixedClock, mode: 'create', eventDelayMs: 0 });
		await verify(store);
	});
	afterAll(() => store.close());

	it('gives the same suppressions, active subscribers, rejects and recipients as a simple model', async () => {
		const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
			histories_begun += 1;
			const history = new History(store, histories_begun);
			await history.begin();
			for (const one of steps) await history.take(one);
			await history.end();
		});
		await fc.assert(property, { numRuns: histories, examples: [[movedAndDeleted]] });
		expect(histories_begun).toBeGreaterThanOrEqual(histories);
	});
});

interface Sent {
	id: string;
	submission: string;
	model: ModelMessage;
	isOfCampaign: boolean;
}

class History {
	readonly #store: Store;
	readonly #number: number;
	readonly #model = new SuppressionModel();
	readonly #lists: number[] = [];
	readonly #messages: Sent[] = [];
	#now = noon;

	constructor(store: Store, number: number) {
		this.#store = store;
		this.#number = number;
	}

	async begin(): Promise<void> {
		for (const name of ['first', 'second']) this.#lists.push(await this.#newList(name));
		await this.#setScope('list');
	}

	async #newList(name: string): Promise<number> {
		const id = await newList(this.#store, name);
		this.#model.lists.add(id);
		return id;
	}

	async #setScope(scope: 'list' | 'all'): Promise<void> {
		await this.#store.writes.putSettings({ values: { unsubscribe_scope: scope }, now: this.#now });
		this.#model.scope = scope;
	}

	async take(one: Step): Promise<void> {
		await this.#do(one);
		await this.#compare();
	}

	async end(): Promise<void> {
		for (const { id, model, isOfCampaign } of this.#messages) {
			if (isOfCampaign && model.isErased) continue;
			const found = await this.#store.reads.getMessage({ id });
			expect(found?.message.state).toBe(model.state);
		}
	}

	async #do(one: Step): Promise<void> {
		switch (one.kind) {
			case 'send':
				await this.#send(this.#key(one.address), one.list === null ? null : this.#list(one.list), one.isBulk);
				return;
			case 'deliver':
				return this.#deliver(this.#waiting(one.message), one.outcome);
			case 'failOften':
				return this.#failOften(one);
			case 'unsubscribe':
			case 'report':
			case 'complain':
				return this.#hear(one);
			case 'mail':
				return this.#mail(this.#list(one.list), 'people');
			case 'mailTable':
				return this.#mail(one.list === null ? null : this.#list(one.list), 'table');
			case 'scope':
				return this.#setScope(one.scope);
			case 'erase':
				return this.#erase(this.#key(one.address), one.isLifted);
			case 'wait':
				this.#now += one.days * day;
				return;
			case 'recreate':
				return this.#recreate(one.list);
			case 'add':
			case 'remove':
				return this.#byName(one);
			default:
				return this.#change(one);
		}
	}

	#key(name: string): string {
		return `${name}.${this.#number}@example.org`;
	}

	#list(index: number): number {
		return this.#lists[index] ?? 0;
	}

	#waiting(index: number) {
		const waiting = this.#messages.filter(({ model }) => model.state === 'queued');
		return waiting[index % Math.max(1, waiting.length)];
	}

	async #send(to: string, list_id: number | null, isBulk: boolean) {
		const type = isBulk ? 'BULK' : 'TRANSACTIONAL';
		const { answer, submission } = await send(this.#store, [to], { type, list_id, now: this.#now });
		const model = this.#model.send(to, type, list_id, this.#now);
		expect(answer.messages_created).toBe(model === null ? 0 : 1);
		const id = answer.messages[0]?.id;
		if (model === null || id === undefined) return undefined;
		const made = { id, submission, model, isOfCampaign: false };
		this.#messages.push(made);
		return made;
	}

	async #deliver(waiting: Sent | undefined, outcome: 'sent' | 'failed' | 'bounced'): Promise<void> {
		if (waiting === undefined) return;
		const { submission, model } = waiting;
		const now = this.#now;
		const [leased] = await this.#store.queue.lease({
			...{ owner: 'worker', now, until: now + day, max: 1 },
			scope: { submission },
		});
		expect(leased !== undefined).toBe(this.#model.lease(model, now));
		if (leased === undefined) return;
		const { message, fence } = leased;
		await this.#store.queue.settle({ settlements: [{ message, fence, at: now, outcome: replies[outcome] }] });
		this.#model.settle(model, outcome, now);
	}

	async #failOften({
		address: name,
		times,
		everyDays,
	}: {
		address: string;
		times: number;
		everyDays: number;
	}) {
		for (let time = 0; time < times; time += 1) {
			await this.#deliver(await this.#send(this.#key(name), null, false), 'failed');
			this.#now += everyDays * day;
		}
	}

	async #hear(one: Extract<Step, { kind: 'unsubscribe' | 'report' | 'complain' }>): Promise<void> {
		const left = this.#messages.filter(({ model }) => ['sent', 'failed', 'bounced'].includes(model.state));
		const found = left[one.message % Math.max(1, left.length)];
		if (found === undefined) return;
		const { id, model } = found;
		if (model.isErased && found.isOfCampaign) return;
		if (one.kind === 'unsubscribe') {
			await this.#store.writes.recordEvents({
				events: [
					eventOf(id, 'UNSUBSCRIBED', { at: this.#now, ...(one.isFromAll && { from_all_lists: true }) }),
				],
			});
			return this.#model.unsubscribe(model, one.isFromAll, this.#now);
		}
		const isComplaint = one.kind === 'complain';
		const named = isComplaint ? model.address : this.#key(one.named);
		const recipient = { addresses: [named], hard: !isComplaint, smtp_code: '5.1.1', diagnostic: null };
		await this.#store.writes.recordReport({
			...{ sha256: newUuid(), at: this.#now, message: id, matched: 'message_id' },
			...{ kind: isComplaint ? 'complaint' : 'bounce', recipients: [recipient] },
		});
		if (isComplaint) this.#model.complain(model, this.#now);
		else if (named === model.address) this.#model.bounceHard(model, this.#now);
	}

	async #recreate(index: number): Promise<void> {
		const id = this.#list(index);
		await this.#store.writes.deleteList({ id, now: this.#now });
		this.#model.deleteList(id, this.#now);
		this.#lists[index] = await this.#newList('again');
	}

	async #byName(one: Extract<Step, { kind: 'add' | 'remove' }>): Promise<void> {
		const email_key = this.#key(one.address);
		const now = this.#now;
		if (one.kind === 'remove') {
			const list_id = one.list === null ? null : this.#list(one.list);
			await this.#store.writes.removeSuppressions({ email_key, reason: one.reason, list_id, now });
			return this.#model.remove(email_key, one.reason, list_id, now);
		}
		const isOfList = one.list !== null && one.reason === 'UNSUBSCRIBED';
		const list_id = isOfList ? this.#list(one.list ?? 0) : null;
		const expires_at = one.days === null ? null : now + one.days * day;
		const row = {
			...{ email_key, reason: one.reason, list_id, source: 'API' as const },
			...{ created_at: null, expires_at },
		};
		await this.#store.writes.putSuppressions({ rows: [row], now });
		this.#model.addByName({ address: email_key, reason: one.reason, list: list_id, end: expires_at }, now);
	}

	async #change(
		one: Extract<Step, { kind: 'create' | 'delete' | 'activate' | 'deactivate' | 'import' | 'move' }>,
	): Promise<void> {
		const list_id = this.#list(one.list);
		const email = this.#key(one.address);
		const now = this.#now;
		const { writes } = this.#store;
		if (one.kind === 'create') {
			await writes.createSubscriber({ list_id, input: { email }, now });
			return this.#model.create(list_id, email);
		}
		if (one.kind === 'import') return this.#import(list_id, email, one);
		const row = this.#model.rowIn(list_id, email);
		const id = (await this.#people(list_id)).find((person) => person.email === email)?.id;
		expect(id !== undefined).toBe(row !== null);
		if (row === null || id === undefined) return;
		if (one.kind === 'delete') {
			await writes.deleteSubscriber({ list_id, id, now });
			return this.#model.delete(row);
		}
		const patch = one.kind === 'move' ? { email: this.#key(one.to) } : { is_active: one.kind === 'activate' };
		const { kind } = await writes.patchSubscriber({ list_id, id, patch, now });
		expect(kind).toBe(this.#patch(row, patch) ? 'written' : 'refused');
	}

	#patch(row: ModelRow, patch: { email: string } | { is_active: boolean }): boolean {
		if ('email' in patch) return this.#model.move(row, patch.email, this.#now);
		if (patch.is_active) return this.#model.activate(row, this.#now);
		this.#model.deactivate(row);
		return true;
	}

	async #import(
		list_id: number,
		email: string,
		{ reactivate, reason }: { reactivate: boolean; reason: string | null },
	): Promise<void> {
		const { writes } = this.#store;
		const spec = { list_id, on_conflict: 'update' as const, reactivate };
		const session = await writes.openImport({ id: newUuid(), key: newUuid(), spec, now: this.#now });
		if (session === null || session === 'conflict') throw new Error('no session');
		const batch = { first: 0, columns: ['email', 'disable_reason'], cells: [email, reason] };
		await writes.putImportBatch({ session: session.id, batch, now: this.#now });
		this.#model.import(list_id, email, { reactivate, reason }, this.#now);
	}

	async #mail(list_id: number | null, to: 'people' | 'table'): Promise<void> {
		const { writes, queue } = this.#store;
		const now = this.#now;
		const { submission, ...opened } = campaignOf(newUuid(), { list_id: to === 'table' ? list_id : null });
		const campaign = opened.id;
		await writes.openCampaign({ ...opened, submission: { ...submission, now }, now });
		const names = ['ann', 'bob', 'eve'].map((name) => this.#key(name));
		const isWanted = (address: string) =>
			to === 'table' || (list_id !== null && this.#model.rowIn(list_id, address)?.isActive === true);
		const asked = names.filter(isWanted);
		const made = asked.flatMap((address) => this.#model.send(address, 'BULK', list_id, now) ?? []);
		const expected = { staged: made.length, suppressed: asked.length - made.length, rejected: 0 };
		if (to === 'people' && list_id !== null) {
			const staged = await writes.addListToCampaign({ campaign, list_id, now });
			const inactive = names.filter(
				(address) => this.#model.rowIn(list_id, address)?.isActive === false,
			).length;
			expect(staged?.counts).toEqual({ ...expected, ...(inactive > 0 && { left_out: inactive }) });
		} else {
			const rows = names.map((name) => recipientOf(name));
			const put = await writes.putCampaignBatch({ campaign, first: 0, rows, now });
			expect(put).toMatchObject({ ack: { counts: expected } });
		}
		await writes.releaseCampaign({ campaign, expect_count: made.length, now });
		const leased = await queue.lease({
			...{ owner: 'worker', now, until: now + day, max: 9, scope: { campaign } },
		});
		expect(leased.map((one) => one.to).sort()).toEqual(made.map(({ address }) => address).sort());
		for (const { message, fence, to: address } of leased) {
			await queue.settle({ settlements: [{ message, fence, at: now, outcome: replies.sent }] });
			const model = made.find((one) => one.address === address);
			if (model === undefined) throw new Error('a message to somebody else');
			this.#model.settle(model, 'sent', now);
			this.#messages.push({ id: message, submission: '', model, isOfCampaign: true });
		}
	}

	async #erase(email_key: string, isLifted: boolean): Promise<void> {
		const fresh = { id: 1, secret: 'the key of this test' };
		await this.#store.writes.erasePerson({ email_key, fresh, now: this.#now });
		this.#model.erase(email_key);
		if (!isLifted) return;
		await this.#store.writes.liftErasure({ email_key });
		this.#model.takeAgain(email_key);
	}

	async #people(list_id: number) {
		const slice = { list_id, after: 0, limit: 100, filter: {} };
		return (await this.#store.reads.sliceSubscribers(slice)) ?? [];
	}

	async #compare(): Promise<void> {
		const now = this.#now;
		for (const name of ['ann', 'bob', 'eve']) {
			const filter = { email__exact: this.#key(name) };
			const page = await this.#store.reads.pageSuppressions({ filter, now, page: 1, page_size: 99 });
			const stored = page.results.map((one) => `${one.reason} ${one.list_id}`).sort();
			expect([name, ...stored]).toEqual([name, ...this.#model.all(this.#key(name), now).sort()]);
		}
		for (const list_id of this.#lists) {
			const stored = (await this.#people(list_id)).map((one) => [
				one.email,
				one.is_active,
				one.disable_reason,
			]);
			const rows = this.#model.rows.filter((row) => row.list === list_id);
			const said = rows.map((row) => [row.address, row.isActive, row.reason]);
			expect(stored.sort()).toEqual(said.sort());
			const active = rows.filter((row) => row.isActive).length;
			expect(await this.#store.reads.getList({ id: list_id })).toMatchObject({
				active_subscribers_count: active,
				inactive_subscribers_count: rows.length - active,
			});
		}
	}
}
