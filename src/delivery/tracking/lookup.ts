import type { AttachedFile } from '../../api/attachments.js';
import type { Clock, Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import { withOwn } from '../../api/variables.js';
import { placeFiles, withImages } from '../../content/attachments.js';
import type { ContentCache } from '../../content/cache.js';
import type { CompiledContent } from '../../content/compile.js';
import type { Reads, Writes } from '../../store/operations.js';
import type { TrackedEvent } from '../../store/store.js';
import { createSubmissions } from '../composer.js';
import { createEventWriter } from './events.js';
import { type Keyring, type LinkOptions, messageLinks, usedLinks } from './tokens.js';

interface TrackingOptions {
	reads: Pick<
		Reads,
		| 'getMessage'
		| 'getOldMessage'
		| 'getSubmission'
		| 'getAttachment'
		| 'getList'
		| 'getListDetails'
		| 'getSettings'
	>;
	writes: Pick<Writes, 'recordEvents'>;
	contents: ContentCache;
	links(): Promise<LinkOptions>;
	clock: Clock;
	failed?(error: unknown): void;
}

export function createTracking(options: TrackingOptions): TrackingPorts {
	const { reads, writes, contents, clock } = options;
	const submissions = createSubmissions(reads);
	const compiledOf = async (submission: Uuid): Promise<CompiledContent | null> => {
		const found = await submissions.get(submission);
		if (found === null) return null;
		// A later send may store the text under the same hash. So cache links without a text under another key.
		const key = found.is_dropped ? `links of ${found.content_sha256}` : found.content_sha256;
		return await contents.get(key, found.content);
	};
	return {
		keyring: async () => (await options.links()).keyring,
		record: createEventWriter(writes),
		find: async (id) => {
			const found = await reads.getMessage({ id });
			if (found !== null) return trackedMessage(found);
			const old = await reads.getOldMessage({ id });
			return old === null ? null : { id, ...old };
		},
		link: async (message, position) => {
			const compiled = await compiledOf(message.submission);
			if (compiled === null) return null;
			return compiled.link(position, filled(await options.links(), compiled, message));
		},
		view: async (message) => {
			const compiled = await compiledOf(message.submission);
			// After keep_bodies has deleted the text, only its links are left, so a view is impossible.
			if (compiled === null || (await submissions.get(message.submission))?.is_dropped) return null;
			const variables = filled(await options.links(), compiled, message);
			const shown = previewOf(compiled, variables);
			if (shown === null || shown.html === null) return shown;
			return { ...shown, html: await withPictures(reads, shown.html, message.files) };
		},
		listName: async ({ list_id }) => {
			if (list_id === null || (await reads.getSettings())['unsubscribe_scope'] === 'all') return null;
			const details = await reads.getListDetails({ id: list_id });
			return details?.public_name ?? (await reads.getList({ id: list_id }))?.name ?? null;
		},
		branding: async () => {
			const values = await reads.getSettings();
			return {
				name: values['page_sender_name'] ?? null,
				logo: values['page_logo_url'] ?? null,
				color: values['page_color'] ?? unbranded.color,
			};
		},
		now: clock.now,
		...(options.failed !== undefined && { failed: options.failed }),
	};
}

function previewOf(compiled: CompiledContent, variables: Readonly<Record<string, string>>) {
	try {
		return compiled.preview({ variables });
	} catch {
		return null;
	}
}

/** Maximum bytes of images in one page, because anyone with the link can request the page repeatedly. */
const mostPictureBytes = 2 * 1024 * 1024;

async function withPictures(
	reads: Pick<Reads, 'getAttachment'>,
	html: string,
	files: readonly AttachedFile[] = [],
): Promise<string> {
	const pictures = [];
	let left = mostPictureBytes;
	for (const file of placeFiles(html, files).inline) {
		const { size = left + 1 } = files.find(({ sha256 }) => sha256 === file.sha256) ?? {};
		if (!file.type.startsWith('image/') || size > left) continue;
		const bytes = await reads.getAttachment({ sha256: file.sha256 });
		if (bytes !== null) pictures.push({ ...file, bytes });
		left -= size;
	}
	return withImages(html, pictures);
}

type Found = NonNullable<Awaited<ReturnType<Reads['getMessage']>>>;

function trackedMessage({ message, rendering, attachments }: Found): TrackedMessage {
	const { id, from, list_id } = message;
	const { to, submission, variables } = rendering;
	const files = attachments.length > 0 && { files: attachments };
	return { id, to, from, list_id, submission, variables, ...files };
}

function filled(
	options: LinkOptions,
	compiled: CompiledContent,
	message: TrackedMessage,
): Record<string, string> {
	const links = messageLinks(options, message.id);
	return withOwn(links === null ? {} : usedLinks(links, compiled.variables), message.variables);
}

export type Happened = TrackedEvent;

export interface TrackedMessage {
	id: Uuid;
	to: string;
	from: string;
	list_id: number | null;
	submission: Uuid;
	variables: Readonly<Record<string, string>>;
	files?: readonly AttachedFile[];
}

interface MessageView {
	subject: string;
	text: string;
	html: string | null;
}

export interface Branding {
	name: string | null;
	logo: string | null;
	color: string;
}

export const unbranded: Branding = { name: null, logo: null, color: '#1d4ed8' };

export interface TrackingPorts {
	keyring(): Promise<Keyring | null>;
	record(event: Happened): Promise<void>;
	find(message: Uuid): Promise<TrackedMessage | null>;
	link(message: TrackedMessage, position: number): Promise<string | null>;
	view(message: TrackedMessage): Promise<MessageView | null>;
	/** Names the list that the recipient can leave. Null if there is no list, or `unsubscribe_scope` is `all`. */
	listName(message: TrackedMessage): Promise<string | null>;
	branding(): Promise<Branding>;
	now(): Micros;
	failed?(error: unknown): void;
}
