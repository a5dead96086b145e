import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { need } from '../../src/api/capabilities.js';
import { connect } from '../../src/cli/connect.js';
import { dependencies } from '../support/connect.js';
import { refuses } from '../support/refuses.js';

describe('idempotency keys of several clients (29)', () => {
	it('do not meet: the same key of two clients makes two submissions', async () => {
		const folder = mkdtempSync(join(tmpdir(), 'mailctl-clients-'));
		onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
		const target = { kind: 'local', url: join(folder, 'engine.db'), create: true } as const;
		const { api, close } = await connect(target, dependencies());
		onTestFinished(close);
		await api.senders.create({ from_email: 'news@example.com' });
		const send = async (subject: string, client?: string) => {
			const accepted: { submission: string | null; replayed: boolean }[] = [];
			const { messages } = await api.send(
				{ from: 'news@example.com', to: ['a@example.com'], subject, text_body: 't' },
				{
					idempotencyKey: 'order-1',
					...(client !== undefined && { client }),
					onAccepted: ({ submission, replayed }) => accepted.push({ submission, replayed }),
				},
			);
			return { id: messages[0]?.id, ...accepted[0] };
		};
		const shop = await send('s', 'shop');
		const blog = await send('another', 'blog');
		const owner = await send('a third');
		expect(new Set([shop.submission, blog.submission, owner.submission]).size).toBe(3);
		expect([shop.replayed, blog.replayed, owner.replayed]).toEqual([false, false, false]);
		expect(await send('s', 'shop')).toEqual({ ...shop, replayed: true });
		await refuses(send('another', 'shop'), 'unprocessable');
		expect((await (await need(api, 'messages')).page({})).count).toBe(3);
	});
});
