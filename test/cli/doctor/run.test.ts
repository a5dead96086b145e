// In which order checks begin and are told of, and what becomes of those that fail or are cut.
import { describe, expect, it } from 'vitest';
import { type Check, ok, warning } from '../../../src/cli/doctor/model.js';
import { runChecks } from '../../../src/cli/doctor/run.js';

const never = new AbortController().signal;
const run = (checks: readonly Check[], signal = never) => runChecks({ checks, signal, onDone: () => {} });

describe('the checks of a run', () => {
	it('that wait for other machines begin when the others are done, and keep their place', async () => {
		const begun: string[] = [];
		const check = (name: Check['name']): Check => ({
			name,
			run: async () => {
				begun.push(`${name} begins`);
				await Promise.resolve();
				begun.push(`${name} ends`);
				return ok(name);
			},
		});
		const findings = await run([check('smtp.login'), check('queue.paused'), check('dns.spf')]);
		expect(begun).toEqual([
			...['queue.paused begins', 'queue.paused ends'],
			...['smtp.login begins', 'dns.spf begins', 'smtp.login ends', 'dns.spf ends'],
		]);
		expect(findings.map((finding) => finding.check)).toEqual(['smtp.login', 'queue.paused', 'dns.spf']);
	});

	it('may have several answers', async () => {
		const check: Check = { name: 'dns.spf', run: async () => [ok('a'), warning('b', 'c')] };
		expect(await run([check])).toEqual([
			{ check: 'dns.spf', level: 'ok', message: 'a', fix: null },
			{ check: 'dns.spf', level: 'warning', message: 'b', fix: 'c' },
		]);
	});

	it('that throw are problems of their own, and the others go on', async () => {
		const broken: Check = { name: 'queue.paused', run: () => Promise.reject(new Error('the disk is gone')) };
		const fine: Check = { name: 'queue.workers', run: async () => ok('fine') };
		expect(await run([broken, fine])).toEqual([
			{
				check: 'queue.paused',
				level: 'problem',
				message: 'this could not be looked at: the disk is gone',
				fix: null,
			},
			{ check: 'queue.workers', level: 'ok', message: 'fine', fix: null },
		]);
	});

	it('that do not end in time are skipped, with what came before', async () => {
		const stop = new AbortController();
		const fine: Check = { name: 'queue.workers', run: async () => ok('fine') };
		const endless: Check = {
			name: 'smtp.login',
			run: () => {
				stop.abort(new Error('out of time'));
				return new Promise(() => {});
			},
		};
		expect(await run([fine, endless], stop.signal)).toMatchObject([
			{ check: 'queue.workers', level: 'ok' },
			{ check: 'smtp.login', level: 'skipped', message: 'there was no time for it' },
		]);
	});
});
