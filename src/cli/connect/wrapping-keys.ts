import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { systemReason } from '../../api/errors.js';
import type { WrappingKey } from '../../store/maintenance.js';
import { ConfigError } from '../frame/errors.js';
import { shellWord } from '../frame/words.js';

const keyBytes = 32;
const mostBytes = 64 * 1024;
const hint = 'one key a line, 32 bytes in hex or base64, the newest first: openssl rand -hex 32';

/**
 * The first key encrypts; every key decrypts. Returns an empty array if neither MAILCTL_KEY_FILE nor MAILCTL_KEY is
 * set. Throws `ConfigError` for an invalid key. If other users can read the key file, only warns: an error would
 * prevent the service from starting.
 */
export function readWrappingKeys(
	env: Readonly<Record<string, string | undefined>>,
	warn: (text: string) => void = () => {},
): WrappingKey[] {
	const file = env['MAILCTL_KEY_FILE'] || undefined;
	const text = env['MAILCTL_KEY'] || undefined;
	if (file !== undefined && text !== undefined)
		throw new ConfigError('use either MAILCTL_KEY_FILE or MAILCTL_KEY, not both');
	if (file !== undefined) return parse(contentOf(file, warn), `MAILCTL_KEY_FILE: ${file}`);
	return text === undefined ? [] : parse(text, 'MAILCTL_KEY');
}

function contentOf(file: string, warn: (text: string) => void): string {
	try {
		const opened = openSync(file, 'r');
		try {
			const there = fstatSync(opened);
			if (!(there.isFile() || there.isFIFO()) || there.size > mostBytes)
				throw new ConfigError(`MAILCTL_KEY_FILE: ${file} is not a file with keys`, { hint });
			const isOpenToOthers = process.platform !== 'win32' && there.isFile() && (there.mode & 0o077) !== 0;
			if (isOpenToOthers) warn(`other users can read the key file ${file}: run chmod 600 ${shellWord(file)}`);
			return new TextDecoder().decode(readFileSync(opened));
		} finally {
			closeSync(opened);
		}
	} catch (cause) {
		if (cause instanceof ConfigError) throw cause;
		throw new ConfigError(`MAILCTL_KEY_FILE: ${file} cannot be read: ${systemReason(cause)}`, { cause });
	}
}

function parse(text: string, where: string): WrappingKey[] {
	const lines = text.split(/\r?\n/).map((line) => line.trim());
	const keys = lines
		.filter((line) => line !== '' && !line.startsWith('#'))
		.map((line, at) => {
			const bytes = /^[\da-f]{64}$/i.test(line) ? Buffer.from(line, 'hex') : Buffer.from(line, 'base64');
			if (bytes.length !== keyBytes || !/^[\w+/=-]+$/.test(line))
				throw new ConfigError(`${where}: key ${at + 1} is not 32 bytes`, { hint });
			const digest = createHash('sha256').update('mailctl wrapping key\0').update(bytes).digest('hex');
			return { id: digest.slice(0, 12), bytes };
		});
	if (keys.length === 0) throw new ConfigError(`${where} contains no key`, { hint });
	return keys;
}
