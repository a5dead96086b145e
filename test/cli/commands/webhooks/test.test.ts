import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TestResult } from '../../../../src/api/records.js';
import { cli } from '../../../support/cli.js';
import { makeProject, type Project } from '../../../support/project.js';
import { stripped } from '../../../support/stripped.js';
import { type NotifiedTarget, startTarget } from '../../../support/target.js';

describe('mailctl webhooks test', () => {
	let project: Project;
	let target: NotifiedTarget | null = null;

	beforeEach(async () => {
		project = await makeProject();
		await project.json(['engine', 'settings', 'set', 'allow_private_webhooks', 'true']);
	});
	afterEach(async () => {
		await target?.close();
		target = null;
	});

	async function hookTo(status: number): Promise<string> {
		target = await startTarget(status);
		return create(target.url);
	}
	async function create(url: string): Promise<string> {
		const hook = await project.json(['webhooks', 'create', '--url', url, '--type', 'opened']);
		return String((hook as { id: number }).id);
	}

	it('calls the target and prints the target’s answer', async () => {
		const id = await hookTo(204);
		expect(await project.json(['webhooks', 'test', id])).toEqual({
			result: true,
			status_code: 204,
			error: null,
			duration_ms: expect.any(Number),
		});
		expect(target?.received).toHaveLength(1);
		const shown = await project.run(['webhooks', 'test', id], { columns: 80 });
		expect([shown.code, shown.stdout]).toEqual([0, '']);
		expect(shown.stderr).toMatch(/^the target answered with 204 after \d+ ms\n$/);
	});

	it('exits with 9 if the target answers with an error', async () => {
		const id = await hookTo(500);
		expect(await project.json(['webhooks', 'test', id], { code: 9 })).toMatchObject({
			result: false,
			status_code: 500,
		});
	});

	it('exits with 3 for an unknown webhook and 2 for an invalid id; a dry run calls nobody', async () => {
		const id = await hookTo(204);
		expect((await project.run(['webhooks', 'test', '99'])).code).toBe(3);
		expect((await project.run(['webhooks', 'test', 'x'])).code).toBe(2);
		expect(await project.json(['webhooks', 'test', id, '-n'])).toEqual({ dry_run: true, test: 1 });
		expect(target?.received).toEqual([]);
	});

	it.each([
		[{ result: null, status_code: null, error: null, duration_ms: null }, 0],
		[{}, 0],
		[{ result: true }, 0],
		[{ result: false }, 9],
	])('understands the test result %j of a service other than mailctl, and exits with %i', async (answer, exit) => {
		const connect = stripped({
			change: (api) => ({
				...api,
				webhooks: { ...api.webhooks, test: async () => answer as TestResult },
			}),
		});
		const { code, stderr } = await cli(['--db', project.db, 'webhooks', 'test', '1'], {
			connect,
			columns: 80,
		});
		expect({ code, said: stderr !== '' }).toEqual({ code: exit, said: true });
	});
});
