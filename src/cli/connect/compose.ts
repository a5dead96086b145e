import { randomUUID } from 'node:crypto';
import type { Attachment } from '../../api/attachments.js';
import { type Clock, type Micros, microsPerMs } from '../../api/datetime.js';
import type { Content } from '../../api/messages.js';
import type { Uuid } from '../../api/records.js';
import { variableNames, variableValue } from '../../api/variables.js';
import { encodeFile } from '../../content/attachments.js';
import { compileContent } from '../../content/compile.js';
import { refusingTooLarge } from '../../content/message-size.js';
import type { AskHtml } from '../../content/read-html.js';
import { addressOf, messageIdOf } from '../../delivery/composer.js';
import type { Keyring, PublicLinks } from '../../delivery/tracking/tokens.js';
import { createInliner } from '../../threads/readers.js';

export interface FileToSend extends Attachment {
	bytes: Buffer;
}

export interface ComposeRequest {
	from: string;
	to: string;
	subject: string;
	text: string | null;
	html: string | null;
	disable_inline: boolean;
	bulk: boolean;
	reply_to: readonly string[];
	cc: readonly string[];
	headers: Readonly<Record<string, string>>;
	variables: Readonly<Record<string, string>>;
	files?: readonly FileToSend[];
}

export interface RenderedContent {
	subject: string;
	text: string;
	html: string | null;
	missing: readonly string[];
}

export interface ComposedMessage extends RenderedContent {
	from: string;
	to: string;
	raw: Buffer;
	withoutFiles: Buffer;
	warnings: readonly string[];
	/**
	 * A note for the user: the message has placeholders for links that only the server can sign. Null if it has none.
	 */
	standsIn: string | null;
	files?: readonly FileToSend[];
}

export interface Links {
	publicUrl: string | null;
	keyring: Keyring | null;
}

interface ComposeParts {
	linksOf: (message: Uuid) => PublicLinks | null;
	standsIn: string | null;
	now: Micros;
	askHtml: AskHtml;
}

export type RemoteComposer = ReturnType<typeof createRemoteComposer>;

export const inlineDeadlineMs = 5_000;

/**
 * `missing` names variables that have no value and are not links. Throws `invalid` if the message becomes too large.
 */
export function composeMessage(request: ComposeRequest, parts: ComposeParts): Promise<ComposedMessage> {
	return refusingTooLarge(() => composed(request, parts));
}

async function composed(
	request: ComposeRequest,
	{ linksOf, standsIn, now, askHtml }: ComposeParts,
): Promise<ComposedMessage> {
	const { subject, text, html, disable_inline, from, reply_to, cc, headers, files = [] } = request;
	const attachments = files.map(({ bytes: _, ...file }) => file);
	const content = { subject, text, html, disable_inline, ...(files.length > 0 && { attachments }) };
	const compiled = await compileContent(content, askHtml);
	const id = randomUUID();
	const links = linksOf(id);
	const variables: Record<string, string> = { ...links, ...request.variables };
	const joined = compiled.join(
		{ from, reply_to, cc, bcc: [], headers },
		{
			to: request.to,
			messageId: messageIdOf(id, addressOf(from)),
			dateMs: Math.floor(now / microsPerMs),
			variables,
			tracking: null,
			listUnsubscribeUrl: request.bulk ? (links?.unsubscribe_url ?? null) : null,
		},
	);
	const withFiles = (encode: (bytes: Buffer) => Buffer) => {
		const encoded = new Map(files.map(({ sha256, bytes }) => [sha256, encode(bytes)]));
		const rest = compiled.rest(encoded, { tracking: null });
		return rest.length === 0 ? joined : Buffer.concat([joined, ...rest]);
	};
	const missing = compiled.variables.filter((reference) => variableValue(reference, variables) === null);
	const isLinked =
		request.bulk ||
		variableNames(compiled.variables).some(
			(name) => Object.hasOwn(standIns, name) && !Object.hasOwn(request.variables, name),
		);
	return {
		...{ from, to: request.to },
		raw: withFiles(encodeFile),
		withoutFiles: withFiles(() => Buffer.alloc(0)),
		...compiled.preview({ variables }),
		missing,
		warnings: compiled.warnings,
		standsIn: isLinked ? standsIn : null,
		...(files.length > 0 && { files }),
	};
}

export function renderContent(
	content: Content,
	variables: Readonly<Record<string, string>>,
	askHtml: AskHtml,
): Promise<RenderedContent> {
	return refusingTooLarge(async () => {
		const compiled = await compileContent(content, askHtml);
		const missing = compiled.variables.filter((reference) => variableValue(reference, variables) === null);
		return { ...compiled.preview({ variables }), missing };
	});
}

/** Placeholders for links that only the service can sign. A host in `.invalid` cannot exist (RFC 2606 s.2). */
const standIns: PublicLinks = {
	unsubscribe_url: 'https://deployment.invalid/unsubscribe',
	view_url: 'https://deployment.invalid/view',
};
const standInNote = 'https://deployment.invalid/… stands for each link that the server signs';

export function createRemoteComposer() {
	const { read, close } = createInliner({ deadlineMs: inlineDeadlineMs });
	return {
		compose: (request: ComposeRequest, clock: Clock) =>
			composeMessage(request, {
				linksOf: () => standIns,
				standsIn: standInNote,
				now: clock.now(),
				askHtml: read,
			}),
		render: (content: Content, variables: Readonly<Record<string, string>>) =>
			renderContent(content, variables, read),
		close,
	};
}
