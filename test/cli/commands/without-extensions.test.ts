// With a service that has only the documented API, several requests replace one transaction of the engine.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Api } from '../../../src/api/api.js';
import { Interrupted } from '../../../src/cli/frame/errors.js';
import { makeProject, type Project, said } from '../../support/project.js';
import { stripped } from '../../support/stripped.js';

let project: Project;
beforeEach(async () => {
	project = await makeProject();
	await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
	for (const variable of ['city', 'plan'])
		await project.json(['fields', 'create', '--variable', variable, '--name', variable]);
	const ann = ['--email', 'ann@example.com', '--meta', 'city=Oslo'];
	await project.json(['subscribers', 'create', '-l', 'L', ...ann]);
});

/** Runs `before` and `after` around each PATCH, to change the data in between. */
const patching = (before: (api: Api) => Promise<unknown>, after: (api: Api) => Promise<unknown>) =>
	stripped({
		change: (api) => ({
			...api,
			subscribers: (list) => {
				const subscribers = api.subscribers(list);
				return {
					...subscribers,
					patch: async (id, input, call) => {
						await before(api);
						const changed = await subscribers.patch(id, input, call);
						await after(api);
						return changed;
					},
				};
			},
		}),
	});
const nothing = async () => undefined;

it('an interrupted deletion prints how many subscribers it deleted', async () => {
	const emails = ['bob@example.com', 'carl@example.com', 'dora@example.com'];
	for (const email of emails) await project.json(['subscribers', 'create', '-l', 'L', '--email', email]);
	const stop = new AbortController();
	let deleted = 0;
	const connect = stripped({
		change: (api) => ({
			...api,
			subscribers: (list) => ({
				...api.subscribers(list),
				delete: async (id, call) => {
					await api.subscribers(list).delete(id, call);
					deleted += 1;
					if (deleted === 2) stop.abort(new Interrupted('SIGINT'));
				},
			}),
		}),
	});
	const argv = ['subscribers', 'delete', ...emails, '-l', 'L', '-y'];
	const { code, stderr } = await project.run(argv, { connect, interrupts: stop.signal });
	expect({ code, stderr }).toEqual({
		code: 130,
		stderr: 'warning: stopped after 2 of 3\ninterrupted\n',
	});
	expect(await project.json(['subscribers', 'list', '-l', 'L'])).toHaveLength(2);
});

describe('subscribers update', () => {
	const update = ['subscribers', 'update', 'ann@example.com', '-l', 'L'];

	it('adds the values of --meta, and removes the variables of --unset-meta', async () => {
		const words = [...update, '--meta', 'plan=pro', '--unset-meta', 'city', '--name', 'Ann'];
		expect(await project.json(words, { connect: stripped() })).toMatchObject({
			name: 'Ann',
			meta: { plan: 'pro' },
		});
		expect(await project.json(['subscribers', 'get', 'ann@example.com', '-l', 'L'])).toMatchObject({
			name: 'Ann',
			meta: { plan: 'pro' },
		});
	});

	it('exits with 5 if another process changes the meta at the same time', async () => {
		const connect = patching(nothing, (api) => api.subscribers(1).patch(1, { meta: { city: 'Bergen' } }));
		const { code, stderr } = await project.run([...update, '--meta', 'plan=pro'], { connect });
		expect({ code, stderr }).toEqual({
			code: 5,
			stderr:
				'error: another call changed the meta of ann@example.com at the same time; check the meta and try again\n',
		});
	});

	it('exits with 7 if the service ignores the change of meta', async () => {
		const connect = stripped({
			change: (api) => ({
				...api,
				subscribers: (list) => ({
					...api.subscribers(list),
					patch: async (id, { meta: _, ...rest }, call) => api.subscribers(list).patch(id, rest, call),
				}),
			}),
		});
		const said = (key: string) => ({
			code: 7,
			stderr: expect.stringMatching(`did not change the meta .*: ${key}\n`),
		});
		expect(await project.run([...update, '--meta', 'plan=pro'], { connect })).toMatchObject(said('plan'));
		expect(await project.run([...update, '--unset-meta', 'city'], { connect })).toMatchObject(said('city'));
		expect(await project.run([...update, '--meta-json', '{}'], { connect })).toMatchObject(said('city'));
	});

	it('ignores the order of the keys in meta', async () => {
		const connect = stripped({
			change: (api) => ({
				...api,
				subscribers: (list) => {
					const subscribers = api.subscribers(list);
					return {
						...subscribers,
						get: async (id, call) => {
							const found = await subscribers.get(id, call);
							return { ...found, meta: Object.fromEntries(Object.entries(found.meta).reverse()) };
						},
					};
				},
			}),
		});
		expect((await project.run([...update, '--meta', 'plan=pro'], { connect })).code).toBe(0);
	});
});

describe('clearing a list', () => {
	const clear = ['lists', 'clear', 'L', '--confirm', 'L', '-o', 'json'];

	beforeEach(async () => {
		const rows = Array.from({ length: 250 }, (_, at) => `p${at}@example.com`);
		const people = await project.file('people.csv', ['email', ...rows].join('\n'));
		await project.json(['subscribers', 'import', people, '-l', 'L']);
	});

	it('continues if someone else deleted a subscriber, and exits with 9', async () => {
		const connect = stripped({
			change: (api) => ({
				...api,
				subscribers: (list) => {
					const subscribers = api.subscribers(list);
					return {
						...subscribers,
						delete: async (id, call) => {
							if (id === 7) await subscribers.delete(id, call);
							return subscribers.delete(id, call);
						},
					};
				},
			}),
		});
		const { code, stdout, stderr } = await project.run(clear, { connect });
		expect({ code, document: JSON.parse(stdout) }).toEqual({
			code: 9,
			document: { list_id: 1, deleted: 250 },
		});
		expect(said({ stderr })).toContainEqual({ warning: '7: Not found.' });
		expect(await project.json(['subscribers', 'list', '-l', 'L'])).toEqual([]);
	});
});

describe('a field with an unknown number of subscribers', () => {
	const connect = stripped();

	it('can be deleted only with --confirm VARIABLE', async () => {
		const refused = await project.run(['fields', 'delete', 'plan', '-y'], { connect });
		expect(refused).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: this will delete the field plan (this service does not say how many subscribers have it)\n' +
				'hint: add --confirm plan to agree\n',
		});
		expect((await project.run(['fields', 'delete', 'plan', '--confirm', 'plan'], { connect })).code).toBe(0);
		expect(await project.json(['fields', 'list'])).toMatchObject([{ variable: 'city' }]);
	});

	it('gets a new variable only with --confirm VARIABLE; a new name needs no --confirm', async () => {
		const rename = ['fields', 'update', 'city', '--variable', 'town'];
		expect((await project.run([...rename, '-y'], { connect })).code).toBe(2);
		expect((await project.run(['fields', 'update', 'city', '--name', 'Town'], { connect })).code).toBe(0);
		expect((await project.run([...rename, '--confirm', 'city'], { connect })).code).toBe(0);
		expect(await project.json(['subscribers', 'get', '1', '-l', 'L'])).toMatchObject({
			meta: { town: 'Oslo' },
		});
	});
});

describe('a command that the service does not support', () => {
	it.each([
		['templates', ['templates', 'list']],
		['messages', ['messages', 'list']],
	])('exits with 2 and prints the unsupported command: %s', async (_, words) => {
		const { code, stderr } = await project.run(words, { connect: stripped() });
		expect(code).toBe(2);
		expect(stderr).toContain(`error: this service does not support mailctl ${words.slice(0, 2).join(' ')}: `);
		expect(stderr).not.toContain('"');
	});
});
