import { existsSync, mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeFolders } from '../../src/jobs/folders.js';

const home = mkdtempSync(join(tmpdir(), 'mailctl-folders-'));

it('are made with those above them, for their owner alone; the topmost new one is named', () => {
	expect(makeFolders(join(home, 'a/b/c'))).toBe(join(home, 'a'));
	for (const made of ['a', 'a/b', 'a/b/c']) expect(statSync(join(home, made)).mode & 0o777).toBe(0o700);
	expect(makeFolders(join(home, 'a/b/c'))).toBeUndefined();
	expect(makeFolders(join(home, 'a/d'))).toBe(join(home, 'a/d'));
});

it('are refused where a file stands, above or in the place', () => {
	writeFileSync(join(home, 'file'), '');
	expect(() => makeFolders(join(home, 'file'))).toThrow('EEXIST');
	expect(() => makeFolders(join(home, 'file/below'))).toThrow('ENOTDIR');
});

it.runIf(existsSync('/proc/self'))('are refused at once where a folder takes none', () => {
	expect(() => makeFolders('/proc/.cache/mailctl')).toThrow('ENOENT');
	expect(() => makeFolders('/proc/mailctl')).toThrow('ENOENT');
});
