import { randomUUID } from 'node:crypto';
import type { DeliveryCounts } from '../../api/counts.js';
import { microsPerMs } from '../../api/datetime.js';
import { invalid } from '../../api/errors.js';
import type { Content } from '../../api/messages.js';
import type { Uuid } from '../../api/records.js';
import { isLoopbackUrl } from '../../api/schema/url.js';
import { type ContentCache, createContentCache } from '../../content/cache.js';
import { createVerp } from '../../delivery/bounces/verp.js';
import { addressOf, Composer } from '../../delivery/composer.js';
import { createKeyReader, type KeysFor, signMessage } from '../../delivery/dkim/sign.js';
import { EncodedFiles } from '../../delivery/files.js';
import { formatReply } from '../../delivery/reply.js';
import { createWorker } from '../../delivery/run.js';
import { type PoolOptions, SmtpPool, usualConnections } from '../../delivery/smtp/pool.js';
import { ehloName, normalSmtpUrl, parseSmtpUrl, type SmtpSettings } from '../../delivery/smtp/settings.js';
import { keyringOf, messageLinks, publicLinks } from '../../delivery/tracking/tokens.js';
import { type EngineSettings, readSettings } from '../../engine/settings.js';
import { leaseOwner } from '../../store/core/processes.js';
import type { Reads } from '../../store/operations.js';
import { createComposingThreads } from '../../threads/composing.js';
import { createInliner } from '../../threads/readers.js';
import { NoSmtp } from '../frame/errors.js';
import type { ComposedMessage, ComposeRequest } from './compose.js';
import { composeMessage, inlineDeadlineMs, type Links, renderContent } from './compose.js';
import { type LocalParts, trackingKeys } from './parts.js';

export type DeliveryScope = { submission: Uuid } | { campaign: Uuid } | null;

export interface DeliverOptions {
	scope: DeliveryScope;
	/** `settled` ends when no message of the scope is due. `stopped` waits for more messages until an abort. */
	until: 'settled' | 'stopped';
	connections?: number;
	rate?: number;
	signal?: AbortSignal;
	leftMs?: number | undefined;
	stallMs?: number;
	onProgress?: (counts: DeliveryCounts) => void;
	onWaiting?: (reason: string, ms: number) => void;
	onHeld?: (reason: string) => void;
	onLimited?: (until: Date) => void;
	onWarning?: (warning: string) => void;
	onReady?: (wake: () => void) => void;
}

export interface DeliverySummary {
	/**
	 * `paused`: a user or a fault stopped the queue. `stalled`: no message had an outcome for `stallMs`. `closed`: the
	 * send window is over.
	 */
	kind: 'settled' | 'stopped' | 'paused' | 'stalled' | 'closed';
	reason: string | null;
	counts: DeliveryCounts;
	warnings: readonly string[];
}

export type Mailer = ReturnType<typeof createMailer>;

/** Enough for 250 compiled contents with a body of 10 KB, or 25 with 100 KB. */
const contentCacheBytes = 16 * 1024 * 1024;

export function assertSmtpUrl(url: string | null | undefined): void {
	if (url === null || url === undefined) return;
	const message = smtpUrlProblem(url);
	if (message !== null) throw invalid({ smtp_url: [{ code: 'invalid', message }] });
}

export function smtpUrlProblem(url: string): string | null {
	const parsed = parseSmtpUrl(normalSmtpUrl(url));
	return parsed.kind === 'error' ? parsed.message : null;
}

/**
 * Create one per connection, and close it before the store. Each call reads the settings, so changes apply at once.
 * `deliver` and `testSmtp` throw `NoSmtp` if no mail server is set.
 */
export function createMailer(parts: LocalParts) {
	const { store, clock } = parts;
	const inliner = createInliner({ deadlineMs: inlineDeadlineMs });
	const contents = createContentCache({ askHtml: inliner.read, maxBytes: contentCacheBytes });
	const files = new EncodedFiles(store.reads);
	const keysFor = createKeyReader({ reads: store.reads, clock });
	const links = async (): Promise<Links> => {
		const settings = await readSettings(store);
		const keys = await trackingKeys(parts);
		return { publicUrl: linkBaseOf(settings), keyring: keyringOf(keys) };
	};
	return {
		deliver: (options: DeliverOptions) => deliver(parts, { contents, files, keysFor }, options),
		testSmtp: async (signal: AbortSignal) => {
			const settings = await readSettings(store);
			const sender = await firstSender(store.reads);
			return testSmtp(smtpOf(settings, sender), {
				...parts,
				sender: settings.bounceAddress ?? sender,
				signal,
			});
		},
		compose: async (request: ComposeRequest): Promise<ComposedMessage> => {
			const options = await links();
			const linksOf = (id: Uuid) => {
				const made = messageLinks(options, id);
				return made && publicLinks(made);
			};
			const composed = await composeMessage(request, {
				linksOf,
				standsIn: null,
				now: clock.now(),
				askHtml: inliner.read,
			});
			return { ...composed, raw: await signMessage(composed.raw, await keysFor(addressOf(request.from))) };
		},
		render: (content: Content, variables: Readonly<Record<string, string>>) =>
			renderContent(content, variables, inliner.read),
		renderMessage: async (id: Uuid): Promise<Buffer | null> => {
			const found = await store.reads.getMessage({ id });
			if (found === null) return null;
			const composer = new Composer({ reads: store.reads, contents, files, keysFor, ...(await links()) });
			const composed = await composer.compose(found.rendering);
			if (composed.kind === 'unsendable')
				throw invalid({ state: [{ code: 'unsendable', message: composed.conversation.reply.text }] });
			const { bytes, rest = [] } = composed.mail;
			return Buffer.concat([bytes, ...rest]);
		},
		contents,
		links,
		close: () => inliner.close(),
	};
}

/** Without a public URL, links lead to this machine, but only if the mail server is on this machine too. */
function linkBaseOf({ publicUrl, smtpUrl, linkBase }: EngineSettings): string | null {
	return publicUrl ?? (isLoopbackUrl(smtpUrl) ? linkBase : null);
}

/**
 * Throws `NoSmtp` and `invalid`. If `smtp_ca` is set, opportunistic TLS becomes required TLS, so that an attacker who
 * removes STARTTLS from the EHLO reply does not get the mail in plain text.
 */
export function smtpOf(
	settings: Pick<EngineSettings, 'smtpUrl' | 'smtpPassword' | 'smtpCa' | 'smtpEhloName' | 'publicUrl'>,
	sender: string | null,
): SmtpSettings & { name: string } {
	const { smtpUrl, smtpPassword, smtpCa } = settings;
	if (smtpUrl === null) throw new NoSmtp();
	const parsed = parseSmtpUrl(smtpUrl);
	if (parsed.kind === 'error') throw invalid({ smtp_url: [{ code: 'invalid', message: parsed.message }] });
	const { security } = parsed.settings;
	return {
		...parsed.settings,
		name: ehloName(settings, sender),
		password: smtpPassword,
		ca: smtpCa,
		security: smtpCa !== null && security === 'opportunistic' ? 'required' : security,
	};
}

/** EHLO may use the domain of the first sender. One connection carries mail of all senders, so any choice would do. */
export async function firstSender(reads: Pick<Reads, 'pageSenders'>): Promise<string | null> {
	return (await reads.pageSenders({ page: 1, page_size: 1 })).results[0]?.from_email ?? null;
}

async function deliver(
	parts: LocalParts,
	{ contents, files, keysFor }: { contents: ContentCache; files: EncodedFiles; keysFor: KeysFor },
	options: DeliverOptions,
): Promise<DeliverySummary> {
	const { store, clock, trace } = parts;
	const settings = await readSettings(store);
	const server = smtpOf(settings, await firstSender(store.reads));
	const keys = await trackingKeys(parts);
	const { bounceAddress } = settings;
	const publicUrl = linkBaseOf(settings);
	const verp = bounceAddress === null ? null : createVerp(bounceAddress, keys);
	const ahead = createComposingThreads({ settings: { publicUrl, keys, bounceAddress }, keysFor });
	const connections = options.connections ?? usualConnections;
	const pool = new SmtpPool({
		settings: server,
		connections,
		...tracedTo(trace),
		onWait: waitFor(server, parts),
	});
	const warnings = new Set<string>();
	const warn = (warning: string) => {
		if (!warnings.has(warning)) options.onWarning?.(warning);
		warnings.add(warning);
	};
	const stall = stallWatch(options.stallMs);
	const worker = createWorker({
		queue: store.queue,
		reads: store.reads,
		contents: warned(contents, warn),
		files,
		keysFor,
		ahead,
		publicUrl,
		keyring: keyringOf(keys),
		...(verp !== null && { returnPath: ({ message }) => verp.addressFor(message) }),
		pool,
		clock,
		owner: leaseOwner(randomUUID().slice(0, 8)),
		random: Math.random,
		connections,
		...(options.rate !== undefined && { rate: options.rate }),
		onProgress: (counts) => {
			stall.moved();
			options.onProgress?.(counts);
		},
		onEvent: (event) => {
			trace?.(`worker ${JSON.stringify(event)}`);
			if (event.kind === 'waiting') options.onWaiting?.(event.reason, event.ms);
			if (event.kind === 'held') options.onHeld?.(event.reason);
			if (event.kind === 'limited') options.onLimited?.(new Date(event.until / microsPerMs));
		},
	});
	options.onReady?.(worker.wake);
	const stopListening = store.onReady?.(worker.wake);
	try {
		const signals = [options.signal, stall.signal].filter((signal) => signal !== undefined);
		const result = await worker.run({
			scope: options.scope,
			until: options.until === 'stopped' ? 'aborted' : options.scope === null ? 'idle' : 'settled',
			...(options.leftMs !== undefined && { leftMs: options.leftMs }),
			signal: AbortSignal.any(signals),
		});
		const { kind, reason, counts } = result;
		const end = kind === 'done' ? 'settled' : kind === 'aborted' ? 'stopped' : 'paused';
		const isStalled = kind === 'aborted' && stall.signal.aborted;
		return { kind: isStalled ? 'stalled' : end, reason, counts, warnings: [...warnings] };
	} finally {
		stopListening?.();
		stall.end();
		pool.close();
		await ahead.close();
	}
}

function stallWatch(stallMs: number | undefined) {
	const controller = new AbortController();
	const timer = stallMs === undefined ? null : setTimeout(() => controller.abort(), stallMs);
	return {
		signal: controller.signal,
		moved: () => timer?.refresh(),
		end: () => {
			if (timer !== null) clearTimeout(timer);
		},
	};
}

function warned(cache: ContentCache, add: (warning: string) => void): ContentCache {
	return {
		get: async (sha256, content) => {
			const compiled = await cache.get(sha256, content);
			for (const warning of compiled.warnings) add(warning);
			return compiled;
		},
	};
}

function waitFor(
	{ host, port }: SmtpSettings,
	{ onWait }: Partial<Pick<LocalParts, 'onWait'>>,
): PoolOptions['onWait'] {
	return onWait ? () => onWait(`${host}:${port}`) : undefined;
}

function tracedTo(trace: LocalParts['trace']): Pick<PoolOptions, 'onTrace'> {
	if (trace === null) return {};
	return { onTrace: ({ from, line }) => trace(`smtp ${from === 'client' ? '>' : '<'} ${line}`) };
}

export async function testSmtp(
	settings: ReturnType<typeof smtpOf>,
	{
		trace,
		sender,
		signal,
		...waits
	}: Pick<LocalParts, 'trace'> &
		Partial<Pick<LocalParts, 'onWait'>> & { sender: string | null; signal: AbortSignal },
) {
	const pool = new SmtpPool({ settings, ...tracedTo(trace), onWait: waitFor(settings, waits) });
	const cut = () => pool.abort();
	signal.addEventListener('abort', cut, { once: true });
	if (signal.aborted) cut();
	const began = performance.now();
	const { failure, certificate, isSenderTried } = await pool.verify(sender);
	signal.removeEventListener('abort', cut);
	pool.close();
	return {
		host: settings.host,
		port: settings.port,
		security: settings.security,
		user: settings.user,
		ok: failure === null,
		reply: failure === null ? null : formatReply(failure.reply),
		remedy: failure?.remedy ?? null,
		duration_ms: Math.round(performance.now() - began),
		ehlo_name: settings.name,
		sender: isSenderTried ? sender : null,
		certificate: certificate && { validTo: Date.parse(certificate.valid_to) * microsPerMs },
	};
}
