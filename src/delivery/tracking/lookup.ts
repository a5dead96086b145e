/** From a message's id to what its links lead to, read from the store and compiled as for sending. */
import type { Clock } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import type { CompiledContent } from '../../content/types.js';
import type { Reads, Writes } from '../../store/store.js';
import type { ContentCache } from '../composer.js';
import { createSubmissions } from '../submissions.js';
import { createEventWriter } from './event-writer.js';
import { type LinkOptions, messageLinks, recipientVariables, usedLinks } from './links.js';
import type { TrackedMessage, TrackingPorts } from './ports.js';

export interface TrackingOptions {
	reads: Pick<Reads, 'getMessage' | 'getSubmission' | 'getList'>;
	writes: Pick<Writes, 'recordEvents'>;
	/** The cache of the composer, or one like it: thousands click on the links of one mailing. */
	contents: ContentCache;
	/** The settings and keys of this moment; asked on every request, so whoever passes it caches. */
	links(): Promise<LinkOptions>;
	clock: Clock;
	/** See `TrackingPorts`. */
	failed?(error: unknown): void;
}

/** For one server: it remembers submissions it has read. Links are verified by the pages before they ask here. */
export function createTracking(options: TrackingOptions): TrackingPorts {
	const { reads, writes, contents, clock } = options;
	const submissions = createSubmissions(reads);
	const compiledOf = async (submission: Uuid): Promise<CompiledContent | null> => {
		const found = await submissions.get(submission);
		return found === null ? null : await contents.get(found.content_sha256, found.content);
	};
	return {
		keyring: async () => (await options.links()).keyring,
		record: createEventWriter(writes),
		find: async (id) => {
			const found = await reads.getMessage({ id });
			return found === null ? null : trackedMessage(found);
		},
		link: async (message, position) => {
			const compiled = await compiledOf(message.submission);
			if (compiled === null) return null;
			return compiled.link(position, filled(await options.links(), compiled, message));
		},
		view: async (message) => {
			const compiled = await compiledOf(message.submission);
			if (compiled === null) return null;
			return compiled.preview({ variables: filled(await options.links(), compiled, message) });
		},
		listName: async ({ list_id }) => {
			const list = list_id === null ? null : await reads.getList({ id: list_id });
			return list?.name ?? null;
		},
		now: clock.now,
		...(options.failed !== undefined && { failed: options.failed }),
	};
}

type Found = NonNullable<Awaited<ReturnType<Reads['getMessage']>>>;

function trackedMessage({ message, rendering }: Found): TrackedMessage {
	const { id, from, list_id } = message;
	const { to, submission, variables } = rendering;
	return { id, to, from, list_id, submission, variables };
}

function filled(
	options: LinkOptions,
	compiled: CompiledContent,
	message: TrackedMessage,
): Record<string, string> {
	const links = messageLinks(options, message.id);
	return recipientVariables(links === null ? {} : usedLinks(links, compiled.variables), message.variables);
}
