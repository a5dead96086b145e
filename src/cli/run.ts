/** One command from its parsed words to its exit code: settles the settings, builds the context, runs, closes. */
import type { Api } from '../api/api.js';
import { microsPerMs, monotonicMicros } from '../api/datetime.js';
import { findPaths, readConfig } from './config.js';
import type { ConnectDependencies, Connection, Target } from './connection.js';
import { createPrompts } from './consent.js';
import type { CommandContext } from './context.js';
import { DeadlinePassed, UsageError } from './errors.js';
import { type ExitCode, exits } from './exit.js';
import { type Format, isMachine, type RawGlobals } from './globals.js';
import { readInput } from './input.js';
import type { Io } from './io.js';
import type { Parsed } from './parse.js';
import { hasColor, paint } from './render/color.js';
import { parseFields, selectColumns } from './render/fields.js';
import { createOut, type Out, type Shown } from './render/out.js';
import { count } from './render/progress.js';
import { clockOf, resolveSettings, type Settings } from './settings.js';
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
}

type Run = Extract<Parsed, { kind: 'run' }>;

export async function run(parsed: Run, { io, connect, interrupts }: RunOptions): Promise<ExitCode> {
	const paths = findPaths(io.env);
	const settings = resolveSettings(parsed.globals, io.env, readConfig(paths), paths);
	const deadline = startDeadline(settings);
	const signal = AbortSignal.any([interrupts, deadline.signal]);
	const format = settings.output.value ?? (io.stdout.isTTY ? 'table' : 'tsv');
	const start = monotonicMicros();
	const talk = createTalk(io.stderr, {
		quiet: parsed.globals.quiet === true,
		paint: await paint(hasColor(io.stderr, settings.color.value, io.env)),
		elapsedMs: () => performance.now(),
	});
	const sources = createSources(io);
	const clock = clockOf(settings);
	const prompts = createPrompts(io, promptOptions(parsed.globals, settings, format, io, signal));
	const listed: Shown[] = [];
	const { strong } = await paint(hasColor(io.stdout, settings.color.value, io.env));
	const out = makeOut(parsed, io, { format, strong, talk, listed });
	const link = linker(settings, {
		connect,
		clock,
		talk,
		io,
		globals: parsed.globals,
		sources,
		createsDatabase: parsed.command.createsDatabase === true,
	});
	const cx: CommandContext = {
		...talk,
		...prompts,
		io,
		out,
		clock,
		globals: parsed.globals,
		settings,
		paths,
		sources,
		signal,
		quiet: parsed.globals.quiet === true,
		dryRun: parsed.globals.dryRun === true,
		connection: link.open,
		api: async (): Promise<Api> => (await link.open()).api,
		local: async () => {
			const { local } = await link.open();
			if (local !== null) return local;
			throw new UsageError(`${parsed.path.join(' ')} works on the machine that owns the database only`, {
				hint: 'give --db PATH, or a profile with a database',
			});
		},
		wouldDo: (what, plan) => out.document({ dry_run: true, ...plan }, `dry run: would ${what}`),
	};
	try {
		checkFields(parsed, cx);
		const ask = prompts.canAsk ? prompts.ask : null;
		const input = await readInput(parsed.command, parsed, { env: io.env, settings, clock, sources, ask });
		await protect(parsed, cx);
		const code = await orAborted(parsed.command.run(cx, input), signal);
		return finalCode(code ?? exits.done, listed, parsed.globals);
	} finally {
		deadline.stop();
		await link.close();
		if (parsed.globals.verbose === true)
			await talk.note(`took ${Math.round((monotonicMicros() - start) / microsPerMs)} ms`);
	}
}

/** A refused change must be refused before it is made, so a wrong `--fields` cannot wait for the first record. */
function checkFields({ command, globals }: Run, cx: CommandContext): void {
	const fields = parseFields(globals.fields);
	if (fields === null || command.columns === undefined) return;
	if (command.writes === true || !isMachine(cx.out.format)) selectColumns(command.columns, fields);
}

/** A protected profile asks before every change; commands that ask anyway are not asked twice. */
async function protect({ command, path }: Run, cx: CommandContext): Promise<void> {
	const { profile, target } = cx.settings;
	if (profile.protected !== true || command.writes !== true || command.severity !== undefined || cx.dryRun)
		return;
	await cx.confirm({
		kind: 'mild',
		what: `change "${target.profile}", a protected profile (${path.join(' ')})`,
	});
}

function finalCode(code: ExitCode, listed: readonly Shown[], globals: RawGlobals): ExitCode {
	const isEmpty = listed.length > 0 && listed.every(({ shown }) => shown === 0);
	return code === exits.done && globals.exitEmpty === true && isEmpty ? exits.empty : code;
}

/** How long a command may clean up once it was told to stop; a second more than the worker gives what is in flight. */
const graceMs = 10_000;

/** The command's own end, or the signal's reason when it does not come to one in time. */
async function orAborted<T>(running: Promise<T>, signal: AbortSignal): Promise<T> {
	let timer: NodeJS.Timeout | undefined;
	const stopped = new Promise<never>((_, reject) => {
		const arm = () => {
			timer = setTimeout(() => reject(signal.reason), graceMs);
		};
		if (signal.aborted) arm();
		else signal.addEventListener('abort', arm, { once: true });
	});
	try {
		return await Promise.race([running, stopped]);
	} catch (error) {
		// What an aborted call throws (AbortError, "database is closed") only says that we stopped it.
		throw signal.aborted ? signal.reason : error;
	} finally {
		clearTimeout(timer);
	}
}

function startDeadline(settings: Settings): { signal: AbortSignal; stop: () => void } {
	const controller = new AbortController();
	const deadline = settings.deadline.value;
	if (deadline === null) return { signal: controller.signal, stop: () => {} };
	const timer = setTimeout(() => controller.abort(new DeadlinePassed(deadline.text)), deadline.ms);
	return { signal: controller.signal, stop: () => clearTimeout(timer) };
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

function makeOut(parsed: Run, io: Io, { format, strong, talk, listed }: OutParts): Out {
	const { globals } = parsed;
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
	/** A named database that is missing is made. */
	createsDatabase: boolean;
}

/** The connection, opened by the first who needs it and closed once. */
function linker(settings: Settings, parts: LinkParts) {
	let opened: Promise<Connection> | null = null;
	const open = async (): Promise<Connection> => {
		const named = await readTokenOf(settings, parts.globals, parts.io.env, parts.sources);
		const target = named.kind === 'local' && parts.createsDatabase ? { ...named, create: true } : named;
		const connect = parts.connect ?? (await import('./connect.js')).connect;
		return connect(target, {
			clock: parts.clock,
			trace: (line) => {
				if (settings.debug.value) void parts.io.stderr.write(`${line}\n`);
			},
			warn: (text) => void parts.talk.warn(text),
		});
	};
	return {
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
