// Ctrl-C while a campaign is staged: nothing may be released afterwards.
import { expect, it } from 'vitest';
import { connect } from '../../../../src/cli/connect.js';
import type { Connect } from '../../../../src/cli/frame/connection.js';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import { makeProject } from '../../../support/project.js';

it('send drops its campaign if the user interrupts the staging', async () => {
	const project = await makeProject({ smtp: 9 });
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	await project.json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com']);
	const interrupts = new AbortController();
	const released: string[] = [];
	const interrupted: Connect = async (target, dependencies) => {
		const connection = await connect(target, dependencies);
		const { ext, ...capabilities } = await connection.api.capabilities();
		const { campaigns } = ext;
		if (campaigns === undefined) throw new Error('the engine has campaigns');
		const slow: typeof campaigns = {
			...campaigns,
			addList: async (...words) => {
				const ack = await campaigns.addList(...words);
				interrupts.abort(new Interrupted('SIGINT'));
				return ack;
			},
			release: async (id, expected) => {
				released.push(id);
				await campaigns.release(id, expected);
			},
		};
		const api = {
			...connection.api,
			capabilities: async () => ({ ...capabilities, ext: { ...ext, campaigns: slow } }),
		};
		return { ...connection, api };
	};
	const send = 'send --from news@example.com --list 1 --subject s --text t --bulk'.split(' ');
	const result = await project.run([...send, '--yes', '--expect-count', '1'], {
		connect: interrupted,
		interrupts: interrupts.signal,
	});
	expect(result.code).toBe(130);
	expect(result.stderr).toMatch(/hint: nothing was sent; the campaign ".+" was deleted\n/);
	expect(released).toEqual([]);
	expect(await project.json(['messages', 'list'])).toEqual([]);
});
