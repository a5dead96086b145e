/** `--preview-as`: the recipient whose message is shown; without it, the first. */

import { type EmailKey, emailKey, parseMailbox } from '../../../api/address.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { addressFault } from '../../verbs/address-faults.js';
import type { SendOptions } from './options.js';

/** The address to look for; null: the first recipient's message is shown. Throws `UsageError` for what is no address. */
export function shownKey({ previewAs }: Pick<SendOptions, 'previewAs'>): EmailKey | null {
	if (previewAs === undefined) return null;
	const parsed = parseMailbox(previewAs);
	if (parsed === null)
		throw new UsageError(`--preview-as: "${previewAs}" is no address: ${addressFault(previewAs, 'mailbox')}`);
	return parsed.key;
}

/** Whether a recipient is the one to be shown. */
export function isShown(key: EmailKey | null, to: string): boolean {
	return key === null || emailKey(parseMailbox(to)?.address ?? to) === key;
}

/** Exit 3. `where`: the recipients, in a sentence. */
export function notAmong({ previewAs = '' }: Pick<SendOptions, 'previewAs'>, where: string): CliError {
	return new CliError('not_found', exits.notFound, `--preview-as: ${previewAs} is not among ${where}`);
}
