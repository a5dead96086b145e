import type { Api } from '../../api/api.js';
import type { Wait } from '../../api/backoff.js';
import type { Clock } from '../../api/datetime.js';
import { isMissingFile, isPostgres } from '../../store/url.js';
import { createNameRecorder } from '../completion/names.js';
import type { Paths } from '../config/config.js';
import { clockOf, type Settings, timeZoneOf } from '../config/settings.js';
import { readAuthority, readTokenOf } from '../config/token.js';
import { parseFields } from '../render/columns.js';
import { createOut, type Out, type Shown } from '../render/out.js';
import { type StatusLine, withStatusLine } from '../render/progress.js';
import type { Query } from '../render/query.js';
import { hasColor, hasUnicode, paint } from '../render/terminal.js';
import { createTimes, type Times } from '../render/times.js';
import { numberText } from '../render/units.js';
import type { Command, Tree } from './command.js';
import { type Hint, mailctl, type NamedTarget } from './command-line.js';
import type { Connect, ConnectDependencies, Connection, LocalEngine, Target } from './connection.js';
import { createDiagnostics, type Diagnostics } from './diagnostics.js';
import { onlyLocal, UsageError } from './errors.js';
import { type Format, isMachine, isOn, type RawGlobals } from './globals.js';
import type { Parsed } from './input.js';
import { type Io, type IoParts, type OutStream, printPage } from './io.js';
import { type Asking, Prompts } from './prompts.js';
import { createSources, type Sources } from './sources.js';

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
	/** Aborted by Ctrl-C, SIGTERM and `--deadline`. Its reason is the command's error. Pass it to every call. */
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
	 * Runs a long read. SQLite blocks the event loop, so Ctrl-C and SIGTERM end the process at once, with their usual
	 * status. A terminal shows `doing` meanwhile, such as `reading news.db`.
	 */
	killable<T>(work: () => Promise<T>, doing?: string): Promise<T>;
	/**
	 * Runs a long write in one transaction. On a signal, PostgreSQL rolls it back, and the command says so. On SQLite the
	 * signal ends the process as in `killable`, and the transaction is rolled back too.
	 */
	undoable<T>(work: () => Promise<T>): Promise<T>;
	atEnd(work: () => Promise<void>): void;
	/** For `--dry-run`: prints the plan (`delete list 3`), or for machines `{"dry_run": true, …plan}`. */
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
	 * Signals of a process that runs only this command: `release` restores their default action, `hold` catches them again.
	 * Null if the process is shared.
	 */
	signals: { release(): void; hold(): void } | null;
	/** Called when target (for hints) and format are known, so that errors can be reported in them. */
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

interface Context {
	cx: CommandContext;
	listed: readonly Shown[];
	takeHints(): Hint[];
	close(): Promise<void>;
}

/**
 * Creates the context of one command call. It connects only when the command asks for a connection. Call `close` once,
 * after success or failure. Throws `UsageError` for `--fields`.
 */
export async function createContext(
	parsed: Run,
	{ io: streams, connect, signals, tree, main }: RunOptions,
	{ paths, settings, target, signal, leftMs }: Settled,
): Promise<Context> {
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
	const { columns, writes, asksItself, createsDatabase } = parsed.command;
	const query =
		globals.query === undefined
			? null
			: await openQueryOf(globals.query, io, { format, diagnostics, writes });
	const printed =
		query === null ? { io, format } : { io: { ...io, stdout: query.stream }, format: 'json' as const };
	const parts = { strong, diagnostics, listed, columns, writes };
	// With `--query`, the expression reads the output, so use no pager.
	const out = makeOut(query === null ? globals : { ...globals, noPager: true }, printed.io, {
		...parts,
		format: printed.format,
		times,
	});
	const outTo: CommandContext['outTo'] = (stdout, format) =>
		makeOut(globals, { ...io, stdout }, { ...parts, format, times: newTimes() });
	const { role: own = 'cli' } = parsed.command;
	const role = typeof own === 'string' ? own : own(parsed.options);
	const isView = parsed.options['watch'] !== undefined;
	const link = linker(settings, {
		connect,
		clock,
		diagnostics,
		io,
		globals,
		sources,
		onWait: await waitsOn(stderr, { io, globals, diagnostics }),
		createsDatabase,
		reads: writes !== true && asksItself !== true && !isView,
		isView,
		role,
		signal,
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
		connection: link.open,
		connectTo: link.connectTo,
		authority: link.authority,
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
			// An expression may run forever, and blocks signal handlers.
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
	{ format, diagnostics, writes }: Pick<OutParts, 'format' | 'diagnostics' | 'writes'>,
): Promise<Query> {
	const { openQuery, queryFormats } = await import('../render/query.js');
	const known = queryFormats.find((one) => one === format);
	if (known === undefined)
		throw new UsageError(`use --query with --output ${queryFormats.join(', ')}, not ${format}`);
	const onMisfit = writes === true ? (why: string) => diagnostics.warn(why) : null;
	return openQuery(io.stdout, { expression, format: known, onMisfit });
}

interface OutParts {
	format: Format;
	strong: (text: string) => string;
	times: Times;
	diagnostics: Diagnostics;
	listed: Shown[];
	columns: Command['columns'];
	writes: Command['writes'];
}

function makeOut(
	globals: RawGlobals,
	io: Io,
	{ format, strong, times, diagnostics, listed, columns, writes }: OutParts,
): Out {
	const fields = parseFields(globals.fields);
	const options = {
		format,
		fields: columns === 'own' ? null : fields,
		known: columns === 'own' || writes !== true ? [] : (columns ?? []).map(({ key }) => key),
		header: globals.noHeader !== true,
		truncate: globals.noTruncate !== true,
		bare: globals.quiet === true && !isMachine(format),
		strong,
		times,
		show: (text: string) => printPage(io, text, globals.noPager !== true),
	};
	return createOut(io.stdout, options, {
		sentence: diagnostics.note,
		listed: async (rows) => {
			listed.push(rows);
			if (rows.shown === 0 && io.stdout.isTTY && !isMachine(format))
				await diagnostics.note('nothing to show');
			if (rows.cut) {
				const of = rows.total === undefined ? 'more' : numberText(rows.total);
				await diagnostics.note(`showing ${numberText(rows.shown)} of ${of}; --all`);
			}
			if (rows.leftOut.length > 0)
				await diagnostics.note(
					`columns left out: ${rows.leftOut.join(', ')}; use a wider terminal, --fields or -o wide`,
				);
		},
	});
}

/**
 * The plan of a dry run: `{"create": {…}}`, `{"update": ID, "with": {…}}`, `{"delete": [ids]}`. `with` has the new
 * values. Other keys give further facts (counts, the finished message).
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

/** Reads the file once for all callers, because a pipe gives its content only once. */
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
	// Warn, because a user who forgot a profile or base URL would take an empty answer for the service's.
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
