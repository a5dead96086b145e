import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { makeProject } from '../support/project.js';

const root = join(import.meta.dirname, '../..');

it('a server whose program files are replaced while it runs can still be stopped', async () => {
	const { db, folder } = await makeProject();
	const place = await mkdtemp(join(tmpdir(), 'mailctl-replaced-'));
	for (const name of ['bin', 'dist', 'package.json'])
		await cp(join(root, name), join(place, name), { recursive: true });
	await symlink(join(root, 'node_modules'), join(place, 'node_modules'));
	const words = [join(place, 'bin/mailctl.js'), '--db', db, 'serve', '--port', '0'];
	const program = spawn(process.execPath, words, { env: { PATH: process.env['PATH'], HOME: folder } });
	const ended = once(program, 'close');
	let said = '';
	program.stderr.on('data', (chunk) => {
		said += String(chunk);
	});
	await eventually(() => expect(said).toContain('listening on'));
	await rm(join(place, 'dist'), { recursive: true });
	program.kill('SIGTERM');
	expect({ ended: await ended, said }).toEqual({
		ended: [0, null],
		said: expect.not.stringContaining('ENOENT'),
	});
});
