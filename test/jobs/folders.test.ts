import { existsSync, mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeFolders } from '../../src/jobs/folders.js';

const home = mkdtempSync(join(tmpdir(), 'mailctl-folders-'));

it('makeFolders creates missing folders with mode 0700, and returns the topmost new one', () => {
	expect(makeFolders(join(home, 'a/b/c'))).toBe(join(home, 'a'));
	for (const made of ['a', 'a/b', 'a/b/c']) expect(statSync(join(home, made)).mode & 0o777).toBe(0o700);
	expect(makeFolders(join(home, 'a/b/c'))).toBeUndefined();
	expect(makeFolders(join(home, 'a/d'))).toBe(join(home, 'a/d'));
});

it('a folder cannot be created if the path or one of its parents is a file', () => {
	writeFileSync(join(home, 'file'), '');
	expect(() => makeFolders(join(home, 'file'))).toThrow('EEXIST');
	expect(() => makeFolders(join(home, 'file/below'))).toThrow('ENOTDIR');
});

it.runIf(existsSync('/proc/self'))('a folder is rejected at once if its parent cannot be written', () => {
	expect(() => makeFolders('/proc/.cache/mailctl')).toThrow('ENOENT');
	expect(() => makeFolders('/proc/mailctl')).toThrow('ENOENT');
});
