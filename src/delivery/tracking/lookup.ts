/** Finds what a message's links lead to by its id, read from the store and compiled as for sending. */
import type { Clock } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import { variableNames } from '../../api/variables.js';
import type { CompiledContent } from '../../content/types.js';
import type { Reads, Writes } from '../../store/store.js';
import { type ContentCache, createSubmissions } from '../composer.js';
import { createEventWriter } from './event-writer.js';
import { type TrackedMessage, type TrackingPorts, unbranded } from './ports.js';
import { type LinkOptions, messageLinks, recipientVariables, usedLinks } from './tokens.js';

export interface TrackingOptions {
	reads: Pick<Reads, 'getMessage' | 'getSubmission' | 'getList' | 'getSettings'>;
	writes: Pick<Writes, 'recordEvents'>;
	/** The cache of the composer, or one like it: thousands click on the links of one campaign. */
	contents: ContentCache;
	/** The current settings and keys; read on every request, so the caller caches them. */
	links(): Promise<LinkOptions>;
	clock: Clock;
	/** See `TrackingPorts`. */
	failed?(error: unknown): void;
}

/** For one server: caches the submissions it has read. The pages verify links before they call it. */
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
			const variables = filled(await options.links(), compiled, message);
			try {
				return compiled.preview({ variables });
			} catch {
				// With its values it is too large for a message: it was never sent.
				return null;
			}
		},
		listName: async ({ list_id }) => {
			if (list_id === null || (await reads.getSettings())['unsubscribe_scope'] === 'all') return null;
			return (await reads.getList({ id: list_id }))?.name ?? null;
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
	return recipientVariables(
		links === null ? {} : usedLinks(links, variableNames(compiled.variables)),
		message.variables,
	);
}
