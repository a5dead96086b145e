import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createOutputFile, refusalOf } from '../../src/tables/output-file.js';
import { cli, makeHome } from '../support/cli.js';
import { runProgram } from '../support/run-program.js';
import { fill, smallDisk } from '../support/small-disk.js';

describe('a file that is written in one step', () => {
	it('is named in the error if the disk is full, and can be written once space is free', async (context) => {
		const disk = smallDisk(1);
		if (disk === null) return context.skip('no disk can be mounted here');
		fill(disk, 65_536);
		const path = join(disk, 'people.csv');
		const file = await createOutputFile(path, 'refuse');
		await expect(file.write('x'.repeat(200_000))).rejects.toMatchObject({
			code: 'disk_full',
			message: `${path} cannot be written: no space is left on the disk`,
		});
		await file.discard();
		expect(readdirSync(disk)).toEqual(['ballast']);
		rmSync(join(disk, 'ballast'));
		const again = await createOutputFile(path, 'refuse');
		await again.write('x'.repeat(200_000));
		await again.finish();
		expect(readdirSync(disk)).toEqual(['people.csv']);
	});

	it('is named in the error if the file system is read-only', async (context) => {
		const disk = smallDisk(1);
		if (disk === null) return context.skip('no disk can be mounted here');
		expect(runProgram('mount', ['-o', 'remount,ro', disk]).status).toBe(0);
		const path = join(disk, 'people.csv');
		await expect(createOutputFile(path, 'refuse')).rejects.toMatchObject({
			code: 'disk',
			message: `${path} cannot be written: its file system is read-only`,
		});
		const below = join(disk, 'below');
		expect(
			await cli(['demo', '--keep', join(below, 'demo')], { env: { HOME: await makeHome() } }),
		).toMatchObject({ code: 74, stderr: `error: ${below}: read-only file system\n` });
	});

	it('is named in the error if its folder is missing, is a file, or denies access', async () => {
		const folder = await makeHome();
		const failing = (path: string) =>
			createOutputFile(path, 'refuse').then(
				() => null,
				(error: Error) => error.message,
			);
		const missing = join(folder, 'none');
		expect(await failing(join(missing, 'x.html'))).toBe(
			`${missing}/x.html cannot be written: there is no folder ${missing}`,
		);
		const file = join(folder, 'file');
		writeFileSync(file, '');
		expect(await failing(join(file, 'x.html'))).toBe(
			`${file}/x.html cannot be written: ${file} is not a folder`,
		);
		const denied = Object.assign(new Error('open'), { code: 'EACCES' });
		expect(refusalOf(denied, join(folder, 'x.html'))).toEqual({
			code: 'unreadable',
			why: 'permission denied',
		});
	});
});
