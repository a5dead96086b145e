import type { Wait } from '../../api/backoff.js';
import { isMissingFile, isPostgres } from '../../store/url.js';
import type { Settings } from '../config/settings.js';
import { readAuthority, readTokenOf } from '../config/token.js';
import { type Hint, mailctl } from './command-line.js';
import type { Connect, ConnectDependencies, Connection, Target } from './connection.js';
import type { Diagnostics } from './diagnostics.js';
import type { RawGlobals } from './globals.js';
import type { Io } from './io.js';
import type { Sources } from './sources.js';

export const noDatabaseHint: Hint = [
	mailctl('engine', 'init'),
	' creates a database; ',
	mailctl('login', 'URL'),
	' uses a service',
];

interface LinkParts {
	connect: Connect;
	clock: ConnectDependencies['clock'];
	diagnostics: Diagnostics;
	io: Io;
	globals: RawGlobals;
	sources: Sources;
	createsDatabase: boolean | undefined;
	reads: boolean;
	isView: boolean;
	role: ConnectDependencies['role'];
	signal: AbortSignal;
	onWait: ((what: string) => Wait) | null;
}

/** Reads the file once for all callers: a pipe gives its content to one reader only. */
function authorityReader({ globals, sources }: Pick<LinkParts, 'globals' | 'sources'>) {
	let read: Promise<string | null> | null = null;
	return () => {
		const { caCert } = globals;
		if (caCert === undefined) return Promise.resolve(null);
		read ??= readAuthority(caCert, sources);
		return read;
	};
}

function waitedFor(target: Target): string {
	if (target.kind === 'remote') return new URL(target.baseUrl).host;
	return isPostgres(target.url) ? 'the database server' : 'the database, which another process holds';
}

export function linker(settings: Settings, parts: LinkParts) {
	let opened: Promise<Connection> | null = null;
	let unmade: string | null = null;
	const authority = authorityReader(parts);
	const isDryRun = parts.globals.dryRun === true;
	const { onWait, role } = parts;
	const waitFor = (target: Target) => {
		if (onWait === null || role !== 'cli') return null;
		return (what = waitedFor(target)) => onWait(what);
	};
	const connectTo = async (
		target: Target,
		{ isTrial = isDryRun, ...rest }: Pick<ConnectDependencies, 'isTrial' | 'firstWrite'> = {},
	): Promise<Connection> => {
		return parts.connect(target, {
			clock: parts.clock,
			// A dry run does not register as a worker.
			role: isDryRun ? 'cli' : parts.role,
			isTrial,
			...rest,
			env: parts.io.env,
			remote: {
				timeoutMs: settings.timeoutMs.value,
				retries: settings.retries.value,
				caCert: await authority(),
				insecure: parts.globals.insecure === true,
				proxy: parts.globals.proxy ?? null,
			},
			trace: parts.diagnostics.trace,
			lockMs: Math.min(settings.timeoutMs.value, settings.deadline.value?.ms ?? Number.POSITIVE_INFINITY),
			onWait: waitFor(target),
			warn: (text) => void parts.diagnostics.warn(text),
			signal: parts.signal,
		});
	};
	const tellNew = async (path: string) => {
		await parts.diagnostics.note(`created a new database: ${path}`);
		if (parts.io.stderr.isTTY)
			await parts.diagnostics.hint([
				'--db or MAILCTL_DB selects another one; ',
				mailctl('login'),
				' uses a service',
			]);
	};
	// Without a warning, an empty answer looks like the service's when a profile or base URL was forgotten.
	const tellMissing = (path: string) =>
		parts.diagnostics.warn(`no database at ${path}: it counts as empty`, noDatabaseHint);
	const told = (tell: (path: string) => Promise<void>) => async (connection: Connection) => {
		if (connection.local?.isNew === true) await tell(connection.local.path);
		return connection;
	};
	const open = async (): Promise<Connection> => {
		const named = await readTokenOf(settings, parts.globals, parts.io.env, parts.sources);
		if (named.kind !== 'local') return connectTo(named);
		const { createsDatabase } = parts;
		if (createsDatabase !== undefined) return connectTo({ ...named, create: createsDatabase });
		if (!named.create || !isMissingFile(named.url)) return connectTo(named);
		if (parts.reads) return connectTo(named, { isTrial: true }).then(told(tellMissing));
		if (isDryRun) return connectTo(named);
		if (role.startsWith('serve')) return connectTo(named).then(told(tellNew));
		const begin = () => {
			unmade = null;
		};
		const opening = connectTo(named, { firstWrite: { begin, made: tellNew } });
		if (parts.isView) return opening.then(told(tellMissing));
		unmade = named.url;
		return opening;
	};
	return {
		authority,
		connectTo: (target: Target) => connectTo(target),
		isRemote: async () => (await opened)?.target.kind === 'remote',
		open: () => {
			opened ??= open();
			return opened;
		},
		close: async () => {
			const connection = await opened?.catch(() => null);
			await connection?.close();
			if (unmade !== null && connection?.local?.isNew === true) await tellMissing(unmade);
		},
	};
}
