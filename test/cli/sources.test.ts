// Files that never end, and a home that is none.
import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { findPaths } from '../../src/cli/config.js';
import { cli } from '../support/cli.js';

it.skipIf(!existsSync('/dev/zero'))(
	'refuses a file that does not end before it has filled the memory',
	async () => {
		expect(
			await cli(['--base-url', 'http://127.0.0.1:9', '--token-file', '/dev/zero', 'lists', 'list']),
		).toEqual({
			code: 2,
			stdout: '',
			stderr: 'error: /dev/zero holds more than 64 MiB\n',
		});
	},
);

it.each(['', 'here'])('keeps nothing in the working directory when HOME is "%s"', (HOME) => {
	expect(findPaths({ HOME }).database).toMatch(/^\//);
});
