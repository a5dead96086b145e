/** The finished message for one recipient, made without a store: what `--preview`, `--eml` and `--dry-run` show. */
import { randomUUID } from 'node:crypto';
import { type Clock, type Micros, microsPerMs } from '../../api/datetime.js';
import { compileContent } from '../../content/compile.js';
import type { InlineCss } from '../../content/types.js';
import { addressOf, messageIdOf } from '../../delivery/composer.js';
import { publicLinks } from '../../delivery/tracking/links.js';
import type { Keyring } from '../../delivery/tracking/tokens.js';
import { createInliner } from '../../threads/inliner.js';
import type { ComposedMessage, ComposeRequest } from '../connection.js';

/** Where links begin and what signs them; null where there are none. */
export interface Links {
	publicUrl: string | null;
	keyring: Keyring | null;
}

export interface ComposeParts {
	links: Links;
	now: Micros;
	inline: InlineCss;
}

/** Composes on behalf of a deployment, whose keys are its own. */
export interface RemoteComposer {
	compose(request: ComposeRequest, clock: Clock): Promise<ComposedMessage>;
	close(): Promise<void>;
}

/** Milliseconds for the CSS of one document. */
export const inlineDeadlineMs = 5_000;
/** What only whoever keeps the keys can give a value to. */
const linkVariables = ['unsubscribe_url', 'view_url'];

/** `missing` names what has neither a value nor a link. */
export async function composeMessage(
	request: ComposeRequest,
	{ links: { publicUrl, keyring }, now, inline }: ComposeParts,
): Promise<ComposedMessage> {
	const { subject, text, html, disable_inline, from, reply_to, cc, headers } = request;
	const compiled = await compileContent({ subject, text, html, disable_inline }, inline);
	const id = randomUUID();
	const links =
		publicUrl === null || keyring === null ? null : publicLinks({ publicUrl, keyring, message: id });
	const variables: Record<string, string> = { ...links, ...request.variables };
	const raw = compiled.join(
		{ from, reply_to, cc, bcc: [], headers },
		{
			to: request.to,
			messageId: messageIdOf(id, addressOf(from)),
			dateMs: Math.floor(now / microsPerMs),
			variables,
			tracking: null,
			listUnsubscribeUrl: request.bulk && links !== null ? links.unsubscribe_url : null,
		},
	);
	const missing = compiled.variables.filter((name) => !Object.hasOwn(variables, name));
	return { raw, ...compiled.preview({ variables }), missing, warnings: compiled.warnings };
}

/** Links stay as they are written and do not count as missing: the deployment fills them in. */
export function createRemoteComposer(): RemoteComposer {
	const { inline, close } = createInliner({ deadlineMs: inlineDeadlineMs });
	return {
		compose: async (request, clock) => {
			const links = { publicUrl: null, keyring: null };
			const composed = await composeMessage(request, { links, now: clock.now(), inline });
			return { ...composed, missing: composed.missing.filter((name) => !linkVariables.includes(name)) };
		},
		close,
	};
}
