/** Builds what a command is given, from the words of the command line and what they settle to. */
import type { Api } from '../api/api.js';
import type { NamedTarget } from './command-line.js';
import type { Paths } from './config.js';
import type { ConnectDependencies, Connection, RemoteOptions, Target } from './connection.js';
import { createPrompts } from './consent.js';
import type { CommandContext } from './context.js';
import { UsageError } from './errors.js';
import { type Format, isMachine, type RawGlobals } from './globals.js';
import type { Io } from './io.js';
import type { Parsed } from './parse.js';
import { hasColor, paint } from './render/color.js';
import { parseFields } from './render/fields.js';
import { createOut, type Out, type Shown } from './render/out.js';
import { count } from './render/progress.js';
import { withOneLine } from './render/standing.js';
import { clockOf, type Settings } from './settings.js';
import { createSources } from './sources.js';
import { createTalk, type Talk } from './talk.js';
import { readTokenOf } from './token.js';

export type Connect = (target: Target, dependencies: ConnectDependencies) => Promise<Connection>;

export interface RunOptions {
	io: Io;
	/** Replaces the composition root, for tests of the frame itself. */
	connect: Connect | null;
	/** Ctrl-C and SIGTERM. */
	interrupts: AbortSignal;
	/** Told what the command's hints keep, once that is known: whoever reports its error says hints too. */
	onTarget: (target: NamedTarget) => void;
}

export type Run = Extract<Parsed, { kind: 'run' }>;

export interface Settled {
	paths: Paths;
	settings: Settings;
	/** What hints keep. */
	target: NamedTarget;
	signal: AbortSignal;
}

export interface Context {
	cx: CommandContext;
	/** What each list printed, for `--exit-empty`. */
	listed: readonly Shown[];
	/** Does what is left to do at the end, then closes the connection, if one was opened. */
	close(): Promise<void>;
}

/**
 * What one call of a command works with. Connects to nothing before the command asks for it; `close` is the caller’s,
 * once, whatever the command came to. Throws `UsageError` for `--fields`.
 */
export async function createContext(
	parsed: Run,
	{ io: streams, connect }: Pick<RunOptions, 'io' | 'connect'>,
	{ paths, settings, target, signal }: Settled,
): Promise<Context> {
	const { globals } = parsed;
	const stderr = withOneLine(streams.stderr);
	// Whatever is said there goes above a progress line, whoever says it.
	const io: Io = { ...streams, stderr };
	const format = settings.output.value ?? (io.stdout.isTTY ? 'table' : 'tsv');
	const talk = createTalk(stderr, {
		quiet: globals.quiet === true,
		paint: await paint(hasColor(io.stderr, settings.color.value, io.env)),
		target,
		elapsedMs: () => performance.now(),
	});
	const sources = createSources(io, signal);
	const clock = clockOf(settings);
	const prompts = createPrompts(io, promptOptions(globals, settings, format, io, signal));
	const listed: Shown[] = [];
	const { strong } = await paint(hasColor(io.stdout, settings.color.value, io.env));
	const out = makeOut(globals, io, { format, strong, talk, listed });
	const { createsDatabase } = parsed.command;
	const role = parsed.command.role ?? 'cli';
	const link = linker(settings, { connect, clock, talk, io, globals, sources, createsDatabase, role });
	const endings: (() => Promise<void>)[] = [];
	const cx: CommandContext = {
		...talk,
		...prompts,
		io,
		out,
		clock,
		globals,
		settings,
		paths,
		sources,
		signal,
		quiet: globals.quiet === true,
		dryRun: globals.dryRun === true,
		connection: link.open,
		connectTo: link.connectTo,
		authority: link.authority,
		api: async (): Promise<Api> => (await link.open()).api,
		local: async () => {
			const { local } = await link.open();
			if (local !== null) return local;
			throw new UsageError(`${parsed.path.join(' ')} works on the machine that owns the database only`, {
				hint: 'give --db PATH, or --profile local for the default database of this machine',
			});
		},
		atEnd: (work) => void endings.push(work),
		wouldDo: (what, plan) => out.document({ dry_run: true, ...plan }, `dry run: would ${what}`),
	};
	const close = async () => {
		try {
			for (const end of endings.splice(0)) await end();
		} finally {
			await link.close();
		}
	};
	return { cx, listed, close };
}

function promptOptions(globals: RawGlobals, settings: Settings, format: Format, io: Io, signal: AbortSignal) {
	const mayAsk = settings.input.value && !isMachine(format);
	return {
		canAsk: mayAsk && io.stderr.isTTY && io.stdin.isTTY,
		yes: globals.yes === true,
		confirm: globals.confirm ?? null,
		signal,
	};
}

interface OutParts {
	format: Format;
	strong: (text: string) => string;
	talk: Talk;
	/** What each list printed, for `--exit-empty`. */
	listed: Shown[];
}

function makeOut(globals: RawGlobals, io: Io, { format, strong, talk, listed }: OutParts): Out {
	const options = {
		format,
		fields: parseFields(globals.fields),
		header: globals.header !== false,
		truncate: globals.truncate !== false,
		quiet: globals.quiet === true,
		strong,
	};
	return createOut(io.stdout, options, {
		sentence: talk.note,
		listed: async (shown) => {
			listed.push(shown);
			if (shown.shown === 0 && io.stdout.isTTY && !isMachine(format)) await talk.note('nothing to show');
			if (shown.cut) {
				const of = shown.total === undefined ? 'more' : count(shown.total);
				await talk.note(`showing ${count(shown.shown)} of ${of}; --all`);
			}
		},
	});
}

interface LinkParts {
	connect: Connect | null;
	clock: ConnectDependencies['clock'];
	talk: Talk;
	io: Io;
	globals: RawGlobals;
	sources: ReturnType<typeof createSources>;
	/** See `Command`; undefined: the default one is made, a named one is not. */
	createsDatabase: boolean | undefined;
	role: ConnectDependencies['role'];
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

/** Once, whoever wants it: a pipe gives what it holds to one reader only. */
function authorityReader({ globals, sources }: Pick<LinkParts, 'globals' | 'sources'>) {
	let read: Promise<string | null> | null = null;
	return () => {
		const { caCert } = globals;
		if (caCert === undefined) return Promise.resolve(null);
		read ??= import('./authority.js').then(({ readAuthority }) => readAuthority(caCert, sources));
		return read;
	};
}

/** The connection, opened by the first who needs it and closed once. */
function linker(settings: Settings, parts: LinkParts) {
	let opened: Promise<Connection> | null = null;
	const authority = authorityReader(parts);
	const connectTo = async (target: Target): Promise<Connection> => {
		const connect = parts.connect ?? (await import('./connect.js')).connect;
		return connect(target, {
			clock: parts.clock,
			role: parts.role,
			env: parts.io.env,
			remote: await remoteOptions(settings, parts.globals, await authority()),
			trace: (line) => {
				if (settings.debug.value) void parts.io.stderr.write(`${line}\n`);
			},
			warn: (text) => void parts.talk.warn(text),
		});
	};
	const open = async (): Promise<Connection> => {
		const named = await readTokenOf(settings, parts.globals, parts.io.env, parts.sources);
		if (named.kind !== 'local') return connectTo(named);
		const connection = await connectTo({ ...named, create: parts.createsDatabase ?? named.create });
		// On another home than was meant it would look like one in which everything is gone.
		if (parts.createsDatabase === undefined && connection.local?.isNew === true)
			await parts.talk.note(`made a new database: ${connection.local.path}`);
		return connection;
	};
	return {
		authority,
		connectTo,
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
