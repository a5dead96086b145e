import type { Command, Operations } from '../../src/store/operations.js';
import type { Leased, LeasedDelivery } from '../../src/store/queue.js';
import type { Store } from '../../src/store/store.js';
import {
	accepted250,
	busy451,
	campaignOf,
	eventOf,
	hour,
	newUuid,
	noon,
	recipientOf,
	submissionOf,
	unknown550,
} from '../contract/store/fixture.js';

type Name = keyof Operations;

export type Target = <N extends Name>(
	name: N,
	command: Command<N>,
) => Promise<Awaited<ReturnType<Operations[N]>>>;

export function targetOf(store: Store): Target {
	const parts: object = { ...store.reads, ...store.writes, ...store.queue };
	return async (name, command) => await Reflect.get(parts, name)(command);
}

const early = noon - 3 * hour;

/** Commands that set up the project, with the same ids in each database. */
const before = {
	waiting: submissionOf(['e1', 'e2', 'e3', 'e4', 'e5', 'e6'].map((name) => `${name}@example.org`)),
	toBob: submissionOf(['bob@example.org'], { list_id: 1, type: 'BULK' }),
	leased: ['ann', 'bob', 'l1', 'l2'].map((name) => submissionOf([`${name}@example.org`], { now: early })),
	sent: submissionOf(['ann@example.org'], { list_id: 1, now: early }),
	expired: submissionOf(['x1@example.org', 'x2@example.org'], { now: early }),
	released: campaignOf('released'),
	open: campaignOf('open'),
	imports: Array.from({ length: 4 }, newUuid),
};

export interface Project {
	leased: ReadonlyMap<string, Leased>;
	expired: Leased;
	sent: string;
	delivery: LeasedDelivery;
}

export async function setUp(target: Target): Promise<Project> {
	for (const name of ['News', 'Other'])
		await target('createList', { input: { name, email_reason: `You read ${name}` }, now: noon });
	await target('createField', { input: { variable: 'city', name: 'City' }, now: noon });
	for (const at of ['1', '2', '3', '4'])
		await target('createField', { input: { variable: `racer${at}`, name: at }, now: noon });
	await target('createSender', { from_email: 'desk@example.org', email_key: 'desk@example.org', now: noon });
	for (const [list_id, name] of [
		[1, 'ann'],
		[1, 'bob'],
		[1, 'cy'],
		[2, 'ann'],
		[2, 'dan'],
	] as const)
		await target('createSubscriber', {
			...{ list_id, input: { email: `${name}@example.org`, meta: { city: 'Bern' } }, now: noon },
		});
	const hook = { url: 'https://example.org/', is_auth_enabled: false, login: '', password: '' };
	for (const type of ['OPENED', 'HARDBOUNCED', 'UNSUBSCRIBED'] as const)
		await target('createWebhook', { input: { ...hook, type }, now: noon });
	const leaseAll = (owner: string, now: number) =>
		target('lease', { owner, now, until: now + hour, max: 100, scope: null });
	await target('acceptSubmission', { ...before.expired, key: null });
	const [expired] = await leaseAll('gone', noon - 2 * hour);
	await target('acceptSubmission', { ...before.sent, key: null });
	const sent = (await leaseAll('worker', noon - 90 * 60_000_000)).find(({ to }) => to === 'ann@example.org');
	const at = noon - hour;
	const outcome = { kind: 'sent', reply: accepted250 } as const;
	if (sent === undefined || expired === undefined) throw new Error('nothing was leased');
	await target('settle', { settlements: [{ message: sent.message, fence: sent.fence, at, outcome }] });
	await target('recordEvents', { events: [eventOf(sent.message, 'OPENED', { at: noon - hour / 2 })] });
	for (const one of before.leased) await target('acceptSubmission', { ...one, key: null });
	const leased = await target('lease', {
		owner: 'worker',
		now: noon - hour / 2,
		until: noon + hour,
		max: 100,
		scope: null,
	});
	for (const one of [before.toBob, before.waiting]) await target('acceptSubmission', { ...one, key: null });
	for (const campaign of [before.released, before.open]) await target('openCampaign', campaign);
	const { id: campaign } = before.released;
	const rows = ['r1', 'r2', 'r3'].map((name) => recipientOf(`${name}@example.org`));
	await target('putCampaignBatch', { campaign, first: 0, rows, now: noon });
	await target('releaseCampaign', { campaign, expect_count: 3, now: noon });
	for (const id of before.imports)
		await target('openImport', {
			id,
			key: id,
			spec: { list_id: 1, on_conflict: 'update', reactivate: false },
			now: noon,
		});
	const shares = { max: 1, each: 1, shares: [] };
	const { deliveries } = await target('leaseDeliveries', {
		owner: 'hooks',
		now: noon,
		until: noon + hour,
		...shares,
	});
	const [delivery] = deliveries;
	if (delivery === undefined) throw new Error('no delivery was leased');
	await target('recordEvents', { events: [eventOf(sent.message, 'UNSUBSCRIBED', { at: noon })] });
	return { leased: new Map(leased.map((one) => [one.to, one])), expired, sent: sent.message, delivery };
}

export interface Call<N extends Name = Name> {
	name: N;
	command: Command<N>;
}

function call<N extends Name>(name: N, command: Command<N>): Call {
	return { name, command } as unknown as Call;
}

/** `racer` is 0 to 3. The calls of one kind may differ only in ways that do not depend on their order. */
type Racing = (project: Project, racer: number) => Call;

const keyed = Array.from({ length: 4 }, () =>
	submissionOf(['new@example.org', 'ann@example.org'], { list_id: 1, type: 'BULK' }),
);
const fresh = Array.from({ length: 4 }, () => submissionOf(['new@example.org', 'cy@example.org']));

function settling(to: string, outcome: Command<'settle'>['settlements'][number]['outcome']): Racing {
	return ({ leased, expired }) => {
		const { message, fence } = leased.get(to) ?? expired;
		return call('settle', { settlements: [{ message, fence, at: noon, outcome }] });
	};
}

export const sharing: Readonly<Record<string, Racing>> = {
	createSubscriber: () =>
		call('createSubscriber', { list_id: 1, input: { email: 'new@example.org' }, now: noon }),
	'createSubscriber, or update': () =>
		call('createSubscriber', {
			...{
				list_id: 1,
				input: { email: 'new@example.org', meta: { city: 'Rome' } },
				if_exists: 'update',
				now: noon,
			},
		}),
	'patchSubscriber of its meta': (_, racer) =>
		call('patchSubscriber', {
			list_id: 1,
			id: 1,
			patch: { merge_meta: { [`racer${racer + 1}`]: 'here' } },
			now: noon,
		}),
	'patchSubscriber of its address': () =>
		call('patchSubscriber', { list_id: 1, id: 3, patch: { email: 'new@example.org' }, now: noon }),
	deleteSubscriber: () => call('deleteSubscriber', { list_id: 1, id: 2, now: noon }),
	putImportBatch: (_, racer) => {
		const cells = ['new@example.org', 'Rome', 'ann@example.org', 'Oslo'];
		const batch = { first: 0, columns: ['email', 'city'], cells };
		return call('putImportBatch', { session: before.imports[racer] ?? '', batch, now: noon });
	},
	'acceptSubmission under a key': (_, racer) =>
		call('acceptSubmission', {
			...(keyed[racer] ?? fresh[0] ?? submissionOf([])),
			key: { scope: 'racers', key: 'one', fingerprint: 'same' },
		}),
	acceptSubmission: (_, racer) =>
		call('acceptSubmission', { ...(fresh[racer] ?? submissionOf([])), key: null }),
	// Each lease takes all due messages, because it is undefined which ones concurrent leases would leave.
	lease: () => call('lease', { owner: 'other', now: noon, until: noon + hour, max: 6, scope: null }),
	renew: ({ leased, expired }) =>
		call('renew', {
			owner: 'worker',
			fences: [...leased.values(), expired],
			now: noon,
			until: noon + 2 * hour,
		}),
	'renew of what has expired': ({ expired }) =>
		call('renew', { owner: 'gone', fences: [expired], now: noon, until: noon + 2 * hour }),
	'settle, sent': settling('ann@example.org', { kind: 'sent', reply: accepted250 }),
	'settle of what has expired': settling('', { kind: 'sent', reply: accepted250 }),
	'settle, deferred': settling('l1@example.org', { kind: 'deferred', reply: busy451, due_at: noon }),
	setCalling: ({ expired }) => call('setCalling', { fences: [expired], isCalling: true }),
	beginComposing: ({ expired }) => call('beginComposing', expired),
	'recordEvents, opened': ({ sent, leased }) =>
		call('recordEvents', {
			events: [sent, ...[...leased.values()].map(({ message }) => message)].map((message) =>
				eventOf(message, 'OPENED'),
			),
		}),
	leaseDeliveries: () =>
		call('leaseDeliveries', { owner: 'others', now: noon, until: noon + hour, max: 1, each: 1, shares: [] }),
	addListToCampaign: () => call('addListToCampaign', { campaign: before.open.id, list_id: 1, now: noon }),
	putCampaignBatch: () =>
		call('putCampaignBatch', {
			...{ campaign: before.open.id, first: 0, now: noon },
			rows: ['new', 'ann', 'e1'].map((name) => recipientOf(`${name}@example.org`)),
		}),
};

export const alone: Readonly<Record<string, Racing>> = {
	'settle, bounced': settling('bob@example.org', { kind: 'bounced', reply: unknown550, suppress: true }),
	'settle, failed': settling('ann@example.org', { kind: 'failed', reply: busy451 }),
	'recordEvents, unsubscribed': ({ leased }) =>
		call('recordEvents', {
			events: [
				eventOf(leased.get('ann@example.org')?.message ?? '', 'UNSUBSCRIBED', { from_all_lists: true }),
			],
		}),
	'settleDeliveries, gone': ({ delivery }) => {
		const answer = { status: 410, error: null, answer: '', duration_ms: 1 };
		const result = { kind: 'gone', answer, url: 'https://example.org/' } as const;
		return call('settleDeliveries', {
			settlements: [{ delivery: delivery.delivery, fence: delivery.fence, at: noon, result }],
		});
	},
	cancelCampaign: () => call('cancelCampaign', { campaign: before.released.id, now: noon }),
	changeMessage: () =>
		call('changeMessage', { id: before.waiting.recipients[0]?.id ?? '', action: 'cancel', now: noon }),
	putSuppressions: () => {
		const row = {
			reason: 'MANUAL',
			list_id: null,
			source: 'API',
			created_at: noon,
			expires_at: null,
		} as const;
		const rows = ['new', 'e2', 'ann'].map((name) => ({ ...row, email_key: `${name}@example.org` }));
		return call('putSuppressions', { rows, now: noon });
	},
	erasePerson: () =>
		call('erasePerson', { email_key: 'new@example.org', fresh: { id: 1, secret: 'c2VjcmV0' }, now: noon }),
	'putSettings, a limit': () => call('putSettings', { values: { send_limit: '3/1h' }, now: noon }),
	pause: () => call('pause', { kind: 'manual', reason: null, retry_at: null, now: noon }),
	deleteField: () => call('deleteField', { id: 1 }),
	deleteList: () => call('deleteList', { id: 1, now: noon }),
};

export async function seenBy(target: Target): Promise<string> {
	const page = { page: 1, page_size: 1000 };
	const people = await Promise.all(
		[1, 2].map((list_id) => target('pageSubscribers', { ...page, list_id, filter: {} })),
	);
	const hooks = [1, 2, 3].map((webhook_id) =>
		target('pageDeliveries', { ...page, webhook_id, state: null, since: null, ordering: 'date_created' }),
	);
	const range = { from: '2000-01-01', to: '2100-01-01', campaign: null, tag: null };
	return textOf({
		lists: await target('pageLists', page),
		people,
		fields: await target('pageFields', page),
		suppressions: await target('pageSuppressions', { ...page, filter: {}, now: noon }),
		messages: await target('pageMessages', { ...page, filter: {} }),
		counts: await target('countMessages', { scope: null }),
		campaigns: await target('pageCampaigns', { ...page, now: noon }),
		deliveries: await Promise.all(hooks),
		figures: await target('reportFigures', { ...range, human: false }),
		human: await target('reportFigures', { ...range, human: true }),
		pauses: await target('queuePauses', undefined),
		stopped: await target('stoppedWebhooks', undefined),
		wrong: await target('checkCounts', {}),
	});
}

const madeUp = new Set([
	...['id', 'message', 'message_id', 'submission', 'campaign', 'campaign_unique_id', 'delivery', 'payload'],
	'record',
	'submission_seq',
]);

export function textOf(value: unknown): string {
	if (Array.isArray(value)) return `[${value.map(textOf).sort().join()}]`;
	if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
	const entries = Object.entries(value).filter(([name]) => !madeUp.has(name));
	return `{${entries
		.map(([name, one]) => `${name}:${textOf(one)}`)
		.sort()
		.join()}}`;
}
