/** What a profile may hold, as people write it. */
import { type Profile, profileKeys } from './config.js';
import { UsageError } from './errors.js';

/** Spelled as in the configuration file; an inherited name (`constructor`) is none. */
export function isProfileKey(key: string): key is keyof Profile {
	return Object.hasOwn(profileKeys, key);
}

/** The value of a key from its text; several patterns are separated by commas. Throws `UsageError`. */
export function parsePreference(key: keyof Profile, text: string): unknown {
	const { check, is } = profileKeys[key];
	const value = readText(key, text);
	if (check(value)) return value;
	throw new UsageError(`${key}: "${text}" is not ${is}`);
}

function readText(key: keyof Profile, text: string): unknown {
	switch (key) {
		case 'retries':
			return /^\d+$/.test(text) ? Number(text) : text;
		case 'protected':
			return text === 'true' ? true : text === 'false' ? false : text;
		case 'allowRecipients':
			return text.split(',').map((one) => one.trim());
		default:
			return text;
	}
}
