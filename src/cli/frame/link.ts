/** How a command reaches its target: the connection of one call, opened when the command asks for it. */
import type { Wait } from '../../api/backoff.js';
import { isMissingFile, isPostgres } from '../../store/url.js';
import type { Settings } from '../config/settings.js';
import { readTokenOf } from '../config/token.js';
import { mailctl } from './command-line.js';
import type { Connect, ConnectDependencies, Connection, RemoteOptions, Target } from './connection.js';
import type { RawGlobals } from './globals.js';
import type { Io } from './io.js';
import type { Sources } from './sources.js';
import type { Talk } from './talk.js';

export interface LinkParts {
	connect: Connect | null;
	clock: ConnectDependencies['clock'];
	talk: Talk;
	io: Io;
	globals: RawGlobals;
	sources: Sources;
	/** See `Command`; undefined: the default one is made, a named one is not. */
	createsDatabase: boolean | undefined;
	/** The command changes nothing: a default database that is missing is read as an empty one. */
	reads: boolean;
	role: ConnectDependencies['role'];
	signal: AbortSignal;
	/** Begins a wait for what is named; null: nothing is shown. */
	onWait: ((what: string) => Wait) | null;
}

async function remoteOptions(
	settings: Settings,
	globals: RawGlobals,
	caCert: string | null,
): Promise<RemoteOptions> {
	return {
		timeoutMs: settings.timeoutMs.value,
		retries: settings.retries.value,
		caCert,
		insecure: globals.insecure === true,
		proxy: globals.proxy ?? null,
	};
}

/** Reads the file once for all callers: a pipe gives its content to one reader only. */
function authorityReader({ globals, sources }: Pick<LinkParts, 'globals' | 'sources'>) {
	let read: Promise<string | null> | null = null;
	return () => {
		const { caCert } = globals;
		if (caCert === undefined) return Promise.resolve(null);
		read ??= import('../config/token.js').then(({ readAuthority }) => readAuthority(caCert, sources));
		return read;
	};
}

function waitedFor(target: Target): string {
	if (target.kind === 'remote') return new URL(target.baseUrl).host;
	return isPostgres(target.url) ? 'the database server' : 'the database, which another process holds';
}

/** The connection, opened by the first that needs it and closed once. */
export function linker(settings: Settings, parts: LinkParts) {
	let opened: Promise<Connection> | null = null;
	let isAsking = false;
	let isImagined = false;
	const authority = authorityReader(parts);
	const isDryRun = parts.globals.dryRun === true;
	const { onWait, role } = parts;
	const waitFor = (target: Target) => {
		// A process that keeps running has waits of its own, and logs.
		if (onWait === null || (role !== undefined && role !== 'cli')) return null;
		return () => onWait(waitedFor(target));
	};
	const connectTo = async (target: Target, isTrial = isDryRun): Promise<Connection> => {
		const connect = parts.connect ?? (await import('../connect.js')).connect;
		return connect(target, {
			clock: parts.clock,
			// A dry run does not register as a worker.
			role: isDryRun ? 'cli' : parts.role,
			isTrial,
			env: parts.io.env,
			remote: await remoteOptions(settings, parts.globals, await authority()),
			trace: parts.talk.trace,
			onWait: waitFor(target),
			warn: (text) => void parts.talk.warn(text),
			signal: parts.signal,
		});
	};
	const tellNew = async (path: string) => {
		await parts.talk.note(`made a new database: ${path}`);
		if (parts.io.stderr.isTTY)
			await parts.talk.hint([
				'--db or MAILCTL_DB names another one; ',
				mailctl('login'),
				' is for a deployment',
			]);
	};
	// Where a profile or a base URL was forgotten, an empty answer would look like that of the service.
	const tellMissing = (path: string) =>
		parts.talk.warn(
			`there is no database at ${path} yet: read as an empty one`,
			[mailctl('engine', 'init'), ' makes it'],
			['--base-url URL or ', mailctl('login'), ' is for a deployment, --db PATH for another database'],
		);
	const open = async (): Promise<Connection> => {
		const named = await readTokenOf(settings, parts.globals, parts.io.env, parts.sources);
		if (named.kind !== 'local') return connectTo(named);
		const create = parts.createsDatabase ?? named.create;
		const isMissing = create && isMissingFile(named.url);
		isImagined = isAsking && isMissing;
		const isRead = parts.reads && parts.createsDatabase === undefined && isMissing;
		const isTrial = isDryRun || isImagined || isRead;
		const connection = await connectTo({ ...named, create }, isTrial);
		if (parts.createsDatabase !== undefined || connection.local?.isNew !== true) return connection;
		// On another home than was meant it would look like one in which everything is gone.
		if (!isTrial) await tellNew(connection.local.path);
		if (isRead && !isAsking) await tellMissing(connection.local.path);
		return connection;
	};
	return {
		authority,
		connectTo: (target: Target) => connectTo(target),
		/** A database that is not there yet is looked at as if it were empty: questions that are left make none. */
		whileAsking: async <T>(ask: () => Promise<T>): Promise<T> => {
			isAsking = true;
			try {
				return await ask();
			} finally {
				isAsking = false;
				if (isImagined && opened !== null) await opened.then(({ close }) => close());
				if (isImagined) opened = null;
				isImagined = false;
			}
		},
		/** False too without a connection: the command is about this machine. */
		isRemote: async () => (await opened)?.target.kind === 'remote',
		open: () => {
			opened ??= open();
			return opened;
		},
		close: async () => {
			const connection = await opened?.catch(() => null);
			await connection?.close();
		},
	};
}
