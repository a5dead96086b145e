// The client on a deployment by another hand: the Django REST framework witness.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, createClient } from '../../../src/http/client/client.js';
import { startWitness, type Witness, witnessMissing } from '../../support/drf.js';

const missing = await witnessMissing();

describe.skipIf(missing !== null)('the client on a Django deployment', () => {
	let witness: Witness;
	let client: Client;

	beforeAll(async () => {
		witness = await startWitness();
		client = createClient({
			baseUrl: witness.baseUrl,
			token: witness.token,
			remote: { timeoutMs: 10_000, retries: 0, caCert: null, insecure: false, proxy: null },
			env: {},
			trace: () => {},
			warn: () => {},
		});
	});
	afterAll(async () => {
		await client.close();
		await witness.stop();
	});

	it('creates, reads, changes and deletes a list', async () => {
		const list = await client.api.lists.create({ name: 'News', email_reason: 'You asked' });
		expect(list).toMatchObject({ name: 'News', email_reason: 'You asked' });
		expect(await client.api.lists.patch(list.id, { name: 'Other' })).toMatchObject({ name: 'Other' });
		expect(await client.api.capabilities()).toEqual({ service: 'unknown', idempotentSend: false, ext: {} });
		await client.api.lists.delete(list.id);
		await expect(client.api.lists.get(list.id)).rejects.toMatchObject({
			code: 'not_found',
			message: 'Not found.',
		});
	});
});
