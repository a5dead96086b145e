import { afterEach, describe, expect, it } from 'vitest';
import { ask, type Deployment, deploy } from '../http/server/serving.js';

let deployment: Deployment;
afterEach(() => deployment.close());

const taken = ['Subscriber with this email already exists in this list.'];
const tooLong = ['Ensure this field has no more than 255 characters.'];
const long = 'x'.repeat(256);

async function start(): Promise<void> {
	deployment = await deploy({
		ports: { checkTarget: async (url) => (url.includes('10.0.0.1') ? 'private_target' : null) },
	});
	await deployment.engine.lists.create({ name: 'News', email_reason: 'asked' });
	await deployment.engine.subscribers(1).create({ email: 'ada@example.org' });
	await deployment.engine.subscribers(1).create({ email: 'bob@example.org' });
	await deployment.engine.fields.create({ variable: 'city', name: 'City' });
	await deployment.engine.fields.create({ variable: 'age', name: 'Age' });
	await deployment.engine.webhooks.create({ url: 'https://example.org/', type: 'OPENED' });
	await deployment.engine.ext.templates.create({ name: 'Hello', text_body: 'Hello' });
}

describe('the answer to an invalid request', () => {
	const letter = { from: 'news@example.com', to: ['a@example.org'], subject: 'x', text_body: 'x' };
	const template = '7f1c6f5e-4a43-4d0f-9c1d-0a4f5f9c2f11';
	it.each<[string, string, object, object]>([
		[
			'POST',
			'/sub/lists/1/subscribers/',
			{ email: 'ADA@example.org', name: long, meta: { town: 'x' } },
			{ name: tooLong, email: taken, meta: ['Unknown variable: town.'] },
		],
		[
			'POST',
			'/sub/lists/1/subscribers/',
			{ email: 'x', meta: { town: 'x' } },
			{ email: ['Enter a valid email address.'], meta: ['Unknown variable: town.'] },
		],
		[
			'PATCH',
			'/sub/lists/1/subscribers/1/',
			{ email: 'bob@example.org', is_active: 'maybe' },
			{ email: taken, is_active: ['Must be a valid boolean.'] },
		],
		['PATCH', '/sub/lists/1/subscribers/1/', { email: 'ada@example.org', name: long }, { name: tooLong }],
		[
			'PATCH',
			'/ext/lists/1/subscribers/1/',
			{ patch: { name: long }, set: { town: 'x' } },
			{ name: tooLong, meta: ['Unknown variable: town.'] },
		],
		[
			'POST',
			'/sub/fields/',
			{ variable: 'city' },
			{ name: ['This field is required.'], variable: ['This field must be unique.'] },
		],
		[
			'PUT',
			'/sub/fields/1/',
			{ variable: 'age', name: long },
			{ name: tooLong, variable: ['This field must be unique.'] },
		],
		['PATCH', '/sub/fields/1/', { variable: 'city', name: long }, { name: tooLong }],
		[
			'POST',
			'/webhooks/',
			{ url: 'http://10.0.0.1/', type: 'NO' },
			{
				type: ['"NO" is not a valid choice.'],
				url: ['This URL points to a private, loopback or reserved address.'],
			},
		],
		[
			'PATCH',
			'/webhooks/1/',
			{ url: 'http://10.0.0.1/', login: long },
			{ login: tooLong, url: ['This URL points to a private, loopback or reserved address.'] },
		],
		[
			'POST',
			'/ext/templates/',
			{ name: 'Hello', text_body: 5, html_body: [] },
			{ html_body: ['Not a valid string.'], name: ['This field must be unique.'] },
		],
		[
			'POST',
			'/message/send/',
			{ ...letter, from: 'me@example.com', to: ['x'], list_id: 99, template_unique_id: template },
			{
				to: { 0: ['Enter a valid email address.'] },
				from: ['Sender address is not verified.'],
				template_unique_id: ['Template not found.'],
				list_id: ['Invalid pk "99" - object does not exist.'],
			},
		],
		[
			'POST',
			'/message/send/',
			{ from: 'me@example.com', to: ['a@example.org'] },
			{
				subject: ['This field is required.'],
				text_body: ['This field is required.'],
				html_body: ['This field is required.'],
				from: ['Sender address is not verified.'],
			},
		],
		[
			'POST',
			'/ext/mailings/',
			{ key: 'k', ...letter, from: 'me@example.com', tag: long, list_id: 99 },
			{
				tag: tooLong,
				from: ['Sender address is not verified.'],
				list_id: ['Invalid pk "99" - object does not exist.'],
			},
		],
	])('names every error: %s %s %j', async (method, path, body, expected) => {
		await start();
		const answer = await ask(deployment, method, path, { body });
		expect({ status: answer.status, body: answer.body }).toEqual({ status: 400, body: expected });
	});
});
