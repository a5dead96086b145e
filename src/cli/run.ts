/** One command from its parsed words to its exit code: settles the settings, builds the context, runs, closes. */
import { microsPerMs, monotonicMicros } from '../api/datetime.js';
import { type NamedTarget, namedTarget, unnamed } from './command-line.js';
import { type ConfigFile, findPaths, type Paths, readConfig } from './config.js';
import type { CommandContext } from './context.js';
import { createContext, type Run, type RunOptions } from './create-context.js';
import { DeadlinePassed } from './errors.js';
import { type ExitCode, exits } from './exit.js';
import { isMachine, type RawGlobals } from './globals.js';
import { readInput } from './input.js';
import { parseFields, selectColumns } from './render/fields.js';
import type { Shown } from './render/out.js';
import { type Env, resolveSettings, type Settings } from './settings.js';

/**
 * The command’s own code, 0 without one, or 8 under `--exit-empty` when all it listed was empty. Rejects with its
 * error, of which `main` makes a code; what was opened is closed before.
 */
export async function run(parsed: Run, options: RunOptions): Promise<ExitCode> {
	const { io, interrupts, onTarget } = options;
	const start = monotonicMicros();
	const paths = findPaths(io.env);
	const settings = settle(parsed, io.env, paths);
	const target = targetOf(parsed, settings);
	onTarget(target);
	const deadline = startDeadline(settings);
	const signal = AbortSignal.any([interrupts, deadline.signal]);
	const { cx, listed, close } = await createContext(parsed, options, { paths, settings, target, signal });
	try {
		checkFields(parsed, cx);
		const ask = cx.canAsk ? cx.ask : null;
		const { clock, sources } = cx;
		const input = await readInput(parsed.command, parsed, { env: io.env, settings, clock, sources, ask });
		await protect(parsed, cx);
		const ended = (reason: unknown) => parsed.command.whenStopped(reason, input);
		const code = await orAborted(parsed.command.run(cx, input), { signal, ended });
		return finalCode(code ?? exits.done, listed, parsed.globals);
	} finally {
		deadline.stop();
		await close();
		if (parsed.globals.verbose === true)
			await cx.note(`took ${Math.round((monotonicMicros() - start) / microsPerMs)} ms`);
	}
}

/** What administers the profiles must work where none of them is usable, and goes to none of them by itself. */
function settle({ command, globals }: Run, env: Env, paths: Paths): Settings {
	const config = command.diagnoses === true ? readIfSound(paths, globals, env) : readConfig(paths);
	if (command.profiles !== true) return resolveSettings(globals, env, config, paths);
	const others = { ...globals };
	for (const key of ['profile', 'baseUrl', 'db'] as const) delete others[key];
	const rest = { ...env, MAILCTL_PROFILE: undefined, MAILCTL_BASE_URL: undefined, MAILCTL_DB: undefined };
	const isThere = config.profile !== null && Object.hasOwn(config.profiles, config.profile);
	return resolveSettings(others, rest, isThere ? config : { ...config, profile: null }, paths);
}

/** To what administers the profiles a target is something to store: its hints are about others. */
function targetOf({ command, globals }: Run, settings: Settings): NamedTarget {
	return command.profiles === true ? unnamed : namedTarget(globals, settings);
}

/** Who names a profile needs it; who names none is told by the command itself what is wrong. */
function readIfSound(paths: Paths, globals: RawGlobals, env: Env): ConfigFile {
	try {
		return readConfig(paths);
	} catch (error) {
		if (globals.profile !== undefined || env['MAILCTL_PROFILE']) throw error;
		return { profile: null, profiles: {} };
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
	if (command.writes !== true || command.severity !== undefined || command.profiles === true || cx.dryRun)
		return;
	if (profile.protected !== true) return;
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

/** The command's own end, or what it ends with when it is stopped and does not come to one in time. */
async function orAborted<T>(
	running: Promise<T>,
	{ signal, ended }: { signal: AbortSignal; ended: (reason: unknown) => unknown },
): Promise<T> {
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
		throw signal.aborted ? ended(signal.reason) : error;
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
