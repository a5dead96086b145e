import type { Api } from '../../api/api.js';
import type { Wait } from '../../api/backoff.js';
import type { Clock } from '../../api/datetime.js';
import { isMissingFile, isPostgres } from '../../store/url.js';
import { createNameRecorder } from '../completion/names.js';
import type { Paths } from '../config/config.js';
import { clockOf, type Settings, timeZoneOf } from '../config/settings.js';
import { readAuthority, readTokenOf } from '../config/token.js';
import { createOut, type Out, type Shown } from '../render/out.js';
import { type StatusLine, withStatusLine } from '../render/progress.js';
import type { Query } from '../render/query.js';
import { hasColor, hasUnicode, paint } from '../render/terminal.js';
import { createTimes, type Times } from '../render/times.js';
import type { Command, Tree } from './command.js';
import { type Hint, mailctl, type NamedTarget } from './command-line.js';
import type { Connect, ConnectDependencies, Connection, LocalEngine, Target } from './connection.js';
import { createDiagnostics, type Diagnostics } from './diagnostics.js';
import { onlyLocal, UsageError } from './errors.js';
import { type Format, isMachine, type RawGlobals } from './globals.js';
import type { Parsed } from './input.js';
import type { Io, IoParts, OutStream } from './io.js';
import { type Asking, Prompts } from './prompts.js';
import { createSources, type Sources } from './sources.js';
import { isOn } from './words.js';

export interface CommandContext extends Diagnostics, Asking {
	readonly io: Io;
	readonly out: Out;
	outTo(stdout: OutStream, format: Format): Out;
	readonly clock: Clock;
	timeZone(): string;
	readonly times: Times;
	readonly globals: RawGlobals;
	readonly settings: Settings;
	readonly paths: Paths;
	readonly sources: Sources;
	/** Ctrl-C, SIGTERM and `--deadline` abort this signal. Its reason is the command's error. Pass it to every call. */
	readonly signal: AbortSignal;
	leftMs(): number | undefined;
	readonly askedFormat: Format | null;
	readonly quiet: boolean;
	readonly dryRun: boolean;
	connection(): Promise<Connection>;
	connectTo(target: Target): Promise<Connection>;
	authority(): Promise<string | null>;
	api(): Promise<Api>;
	local(): Promise<LocalEngine>;
	/**
	 * Runs a long read. During a local read, Ctrl-C and SIGTERM end the process, because SQLite blocks signal handlers.
	 * A terminal shows `doing`, such as `reading news.db`.
	 */
	killable<T>(work: () => Promise<T>, doing?: string): Promise<T>;
	/**
	 * Runs a long write in one transaction. A signal rolls the transaction back. With SQLite, the signal also ends the
	 * process.
	 */
	undoable<T>(work: () => Promise<T>): Promise<T>;
	atEnd(work: () => Promise<void>): void;
	/** Prints the plan of `--dry-run`: `delete list 3`, or `{"dry_run": true, …plan}` for machines. */
	wouldDo(what: string, plan: Foreseen): Promise<void>;
	readonly tree: Tree;
	main(options: MainOptions): Promise<number>;
}

export interface MainOptions extends IoParts {
	argv?: readonly string[];
	interrupts?: AbortSignal;
	connect?: Connect;
}

export interface RunOptions extends Pick<CommandContext, 'tree' | 'main'> {
	io: Io;
	connect: Connect;
	interrupts: AbortSignal;
	/**
	 * `release` restores the default action of signals. `hold` catches signals again. Null if other code shares the
	 * process.
	 */
	signals: { release(): void; hold(): void } | null;
	/** Called as soon as target and format are known, because printing an error needs both. */
	onSettled: (settled: { target: NamedTarget; format: Format | null }) => void;
}

export type Run = Extract<Parsed, { kind: 'run' }>;

interface Settled {
	paths: Paths;
	settings: Settings;
	target: NamedTarget;
	signal: AbortSignal;
	leftMs: () => number | undefined;
}

/**
 * The context connects only when the command asks for a connection. Call `close` once, after success or failure.
 * Throws `UsageError` for an invalid `--fields` or `--query`.
 */
export async function createContext(
	parsed: Run,
	{ io: streams, connect, signals, tree, main }: RunOptions,
	{ paths, settings, target, signal, leftMs }: Settled,
) {
	const { globals } = parsed;
	const stderr = withStatusLine(streams.stderr, { isDumb: streams.env['TERM'] === 'dumb' });
	const { stdout } = streams;
	const io: Io = { ...streams, stderr, stdout: stdout.isTTY ? stderr.beside(stdout) : stdout };
	const format = settings.output.value ?? (io.stdout.isTTY ? 'table' : 'tsv');
	const { takeHints, end, ...diagnostics } = createDiagnostics(stderr, {
		format,
		debug: settings.debug.value,
		quiet: globals.quiet === true,
		paint: await paint(hasColor(io.stderr, settings.color.value, io.env)),
		target,
		elapsedMs: () => performance.now(),
	});
	const sources = createSources(io, signal);
	const clock = clockOf(settings);
	const timeZone = () => timeZoneOf(settings);
	const zone = isMachine(format) ? () => 'UTC' : timeZone;
	const newTimes = () => createTimes({ zone, clock, isRead: io.stdout.isTTY });
	const times = newTimes();
	const isAble = io.env['TERM'] !== 'dumb' && io.stderr.columns >= 20;
	const prompts = new Prompts(io, {
		canAsk: settings.input.value && !isMachine(format) && isAble && io.stderr.isTTY && io.stdin.isTTY,
		yes: globals.yes === true,
		confirm: globals.confirm ?? null,
		signal,
		hasColor: hasColor(io.stderr, settings.color.value, io.env),
	});
	const listed: Shown[] = [];
	const { strong } = await paint(hasColor(io.stdout, settings.color.value, io.env));
	const { command } = parsed;
	const { query: expression } = globals;
	const query =
		expression === undefined ? null : await openQueryOf(expression, io, { format, diagnostics, command });
	const parts = { globals, command, strong, listed, note: diagnostics.note };
	// The output of a command with `--query` is the input of the expression, so use no pager.
	const queried = query && { io: { ...io, stdout: query.stream }, globals: { ...globals, noPager: true } };
	const out = createOut({ ...parts, io, times, format: queried === null ? format : 'json', ...queried });
	const outTo: CommandContext['outTo'] = (stdout, format) =>
		createOut({ ...parts, io: { ...io, stdout }, format, times: newTimes() });
	const { role = 'cli' } = command;
	const onWait = await waitsOn(stderr, { io, globals, diagnostics });
	const link = new Link({
		...{ connect, settings, clock, diagnostics, io, globals, sources, command, onWait, signal },
		role: typeof role === 'string' ? role : role(parsed.options),
		isView: parsed.options['watch'] !== undefined,
	});
	const names = createNameRecorder(paths.names);
	const endings: (() => Promise<void>)[] = [];
	const killable: CommandContext['killable'] = async (work, doing) => {
		const isLocal = (await link.open()).local !== null;
		if (!isLocal || signal.aborted) return work();
		signals?.release();
		if (doing !== undefined) diagnostics.stand(doing);
		return work().finally(() => {
			if (doing !== undefined) diagnostics.stand(null);
			signals?.hold();
		});
	};
	const cx: CommandContext = {
		...diagnostics,
		...prompts,
		io,
		out,
		outTo,
		clock,
		timeZone,
		times,
		globals,
		settings,
		paths,
		sources,
		signal,
		tree,
		main,
		leftMs,
		askedFormat: settings.output.origin.level === 'flag' ? out.format : null,
		quiet: globals.quiet === true,
		dryRun: globals.dryRun === true,
		connection: () => link.open(),
		connectTo: (target) => link.connectTo(target),
		authority: () => link.authority(),
		api: async (): Promise<Api> => {
			const { api, target } = await link.open();
			return globals.dryRun === true ? api : names.listen(api, target);
		},
		local: async () => {
			const { local } = await link.open();
			if (local !== null) return local;
			throw onlyLocal(parsed.path.join(' '));
		},
		killable,
		undoable: async (work) => {
			const { target } = await link.open();
			return target.kind === 'local' && isPostgres(target.url) ? work() : killable(work);
		},
		atEnd: (work) => void endings.push(work),
		wouldDo: async (what, plan) => {
			await out.plan({ dry_run: true, ...plan }, `dry run: would ${what}`);
			if (await link.isRemote()) await diagnostics.note(unchecked);
		},
	};
	const close = async () => {
		try {
			for (const end of endings.splice(0)) await end();
			names.keep();
			// Restore the default action of signals, because an expression may run forever and block signal handlers.
			if (query !== null) signals?.release();
			await query?.end();
		} finally {
			await link.close();
			await end();
			stderr.close();
		}
	};
	return { cx, listed, takeHints, close };
}

async function waitsOn(
	stderr: StatusLine,
	{ io, globals, diagnostics }: { io: Io; globals: RawGlobals; diagnostics: Diagnostics },
): Promise<((what: string) => Wait) | null> {
	if (!stderr.canRewrite || isOn(io.env['CI']) || globals.quiet === true || diagnostics.trace !== null)
		return null;
	const { createSpinner } = await import('../render/progress.js');
	return createSpinner(stderr, { unicode: hasUnicode(io.env), elapsedMs: () => performance.now() });
}

async function openQueryOf(
	expression: string,
	io: Io,
	{ format, diagnostics, command }: { format: Format; diagnostics: Diagnostics; command: Command },
): Promise<Query> {
	const { openQuery, queryFormats } = await import('../render/query.js');
	const known = queryFormats.find((one) => one === format);
	if (known === undefined)
		throw new UsageError(`use --query with --output ${queryFormats.join(', ')}, not ${format}`);
	const onMisfit = command.writes === true ? (why: string) => diagnostics.warn(why) : null;
	return openQuery(io.stdout, { expression, format: known, onMisfit });
}

/**
 * The plan of a dry run: `{"create": {…}}`, `{"update": ID, "with": {…}}`, `{"delete": [ids]}`. Other keys give facts
 * such as counts or the finished message.
 */
export type Foreseen = Readonly<Record<string, unknown>>;

export const unchecked = 'the service may still refuse this: only the service knows its own rules';

export const noDatabaseHint: Hint = [
	mailctl('engine', 'init'),
	' creates a database; ',
	mailctl('login', 'URL'),
	' uses a service',
];

interface LinkParts {
	connect: Connect;
	settings: Settings;
	clock: Clock;
	diagnostics: Diagnostics;
	io: Io;
	globals: RawGlobals;
	sources: Sources;
	command: Command;
	role: ConnectDependencies['role'];
	isView: boolean;
	signal: AbortSignal;
	onWait: ((what: string) => Wait) | null;
}

class Link {
	readonly #parts: LinkParts;
	readonly #isDryRun: boolean;
	#opened: Promise<Connection> | null = null;
	#authority: Promise<string | null> | null = null;
	#unmade: string | null = null;

	constructor(parts: LinkParts) {
		this.#parts = parts;
		this.#isDryRun = parts.globals.dryRun === true;
	}

	/** Reads the file once for all callers, because a pipe cannot be read twice. */
	authority(): Promise<string | null> {
		const { globals, sources } = this.#parts;
		this.#authority ??=
			globals.caCert === undefined ? Promise.resolve(null) : readAuthority(globals.caCert, sources);
		return this.#authority;
	}

	open(): Promise<Connection> {
		this.#opened ??= this.#open();
		return this.#opened;
	}

	async isRemote(): Promise<boolean> {
		return (await this.#opened)?.target.kind === 'remote';
	}

	async connectTo(
		target: Target,
		more: Pick<ConnectDependencies, 'isTrial' | 'firstWrite'> = {},
	): Promise<Connection> {
		const { connect, settings, clock, diagnostics, io, globals, role, signal, onWait } = this.#parts;
		const { timeoutMs, retries, deadline } = settings;
		return connect(target, {
			clock,
			// A dry run does not register as a worker.
			role: this.#isDryRun ? 'cli' : role,
			isTrial: this.#isDryRun,
			...more,
			env: io.env,
			remote: {
				timeoutMs: timeoutMs.value,
				retries: retries.value,
				caCert: await this.authority(),
				insecure: globals.insecure === true,
				proxy: globals.proxy ?? null,
			},
			trace: diagnostics.trace,
			lockMs: Math.min(timeoutMs.value, deadline.value?.ms ?? Number.POSITIVE_INFINITY),
			onWait: onWait === null || role !== 'cli' ? null : (what = waitedFor(target)) => onWait(what),
			warn: (text) => void diagnostics.warn(text),
			signal,
		});
	}

	async close(): Promise<void> {
		const connection = await this.#opened?.catch(() => null);
		await connection?.close();
		if (this.#unmade !== null && connection?.local?.isNew === true) await this.#tellMissing(this.#unmade);
	}

	async #open(): Promise<Connection> {
		const { settings, globals, io, sources, command, role, isView } = this.#parts;
		const { createsDatabase, writes, asksItself } = command;
		const target = await readTokenOf(settings, globals, io.env, sources);
		if (target.kind !== 'local') return this.connectTo(target);
		if (createsDatabase !== undefined) return this.connectTo({ ...target, create: createsDatabase });
		if (!target.create || !isMissingFile(target.url)) return this.connectTo(target);
		const reads = writes !== true && asksItself !== true && !isView;
		if (this.#isDryRun && !reads) return this.connectTo(target);
		const begin = () => {
			this.#unmade = null;
		};
		const isServed = role.startsWith('serve');
		const firstWrite = { begin, made: (path: string) => this.#tellNew(path) };
		const connection = await this.connectTo(
			target,
			reads ? { isTrial: true } : isServed ? {} : { firstWrite },
		);
		const { local } = connection;
		if (reads || isView) {
			if (local?.isNew === true) await this.#tellMissing(local.path);
		} else if (!isServed) this.#unmade = target.url;
		else if (local?.isNew === true) await this.#tellNew(local.path);
		return connection;
	}

	async #tellNew(path: string): Promise<void> {
		const { diagnostics, io } = this.#parts;
		await diagnostics.note(`created a new database: ${path}`);
		if (!io.stderr.isTTY) return;
		await diagnostics.hint([
			'--db or MAILCTL_DB selects another database; ',
			mailctl('login'),
			' uses a service',
		]);
	}

	/** Warns, because a user who forgot `--profile` or `--base-url` would think that the service has no data. */
	#tellMissing(path: string): Promise<void> {
		return this.#parts.diagnostics.warn(
			`no database at ${path}: mailctl assumes an empty database`,
			noDatabaseHint,
		);
	}
}

function waitedFor(target: Target): string {
	if (target.kind === 'remote') return new URL(target.baseUrl).host;
	return isPostgres(target.url) ? 'the database server' : 'the database, which another process has locked';
}
