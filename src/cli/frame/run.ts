import { microsPerMs, monotonicMicros } from '../../api/datetime.js';
import { ApiError, MissingExtension, mayHaveHappened, StoreError } from '../../api/errors.js';
import { DatabaseMissing } from '../../store/errors.js';
import { type ConfigFile, findPaths, type Paths, readConfig } from '../config/config.js';
import { protectProfile } from '../config/profiles.js';
import { resolveSettings, type Settings } from '../config/settings.js';
import { checkReach } from '../config/target.js';
import { refusedTokenHint } from '../config/token.js';
import { parseFields, selectColumns } from '../render/columns.js';
import type { Shown } from '../render/out.js';
import { isCommand, loadNode, type TreeEntry } from './command.js';
import { type Hint, mailctl, namedTarget, unnamed } from './command-line.js';
import { type CommandContext, createContext, noDatabaseHint, type Run, type RunOptions } from './context.js';
import { CliError, ConfigError, DeadlinePassed, OutputClosed, UsageError } from './errors.js';
import { classify, type ExitCode, exits, hinted } from './exit.js';
import { graceMs, isFormat, isMachine, type RawGlobals, timedBy } from './globals.js';
import { fitHelp, nodeHelp } from './help.js';
import { type Missing, parse, readInput } from './input.js';
import type { Env } from './io.js';
import { printPage } from './io.js';

export async function invoke(
	entry: TreeEntry,
	argv: readonly string[],
	options: RunOptions,
): Promise<ExitCode> {
	const parsed = parse(await loadNode(entry), argv);
	if (parsed.kind === 'run') return run(parsed, options);
	const { node, path, globals } = parsed;
	const { json, output = '', query, noPager } = globals;
	if (json === true || query !== undefined || (isFormat(output) && isMachine(output))) {
		const help = options.tree.find(({ name }) => name === 'help');
		const command = help && (await loadNode(help));
		if (command !== undefined && isCommand(command))
			return run({ kind: 'run', command, path: ['help'], words: path, options: {}, globals }, options);
	}
	await printPage(options.io, await fitHelp(nodeHelp(node, path), options.io.stdout), noPager !== true);
	return exits.done;
}

/**
 * Returns the command's exit code; 8 with `--exit-empty` if all lists were empty. Rejects with the command's error
 * after closing the connection; `main` maps the error to an exit code.
 */
async function run(parsed: Run, options: RunOptions): Promise<ExitCode> {
	const { io, interrupts, onSettled } = options;
	const start = monotonicMicros();
	const paths = findPaths(io.env);
	const unread: string[] = [];
	const settings = settle(parsed, io.env, paths, unread);
	const { profiles, needsNoTarget } = parsed.command;
	const isNamed = profiles !== true && needsNoTarget !== true;
	const target = isNamed ? namedTarget(parsed.globals, settings) : unnamed;
	onSettled({ target, format: settings.output.value });
	checkReach(parsed.command, { ...parsed, target: settings.target });
	const deadline = startDeadline(settings, io.env);
	const signal = AbortSignal.any([interrupts, deadline.signal]);
	const settled = { paths, settings, target, signal, leftMs: deadline.leftMs };
	const { cx, listed, takeHints, close } = await createContext(parsed, options, settled);
	try {
		for (const why of unread) await cx.warn(`${why}; mailctl ignores the settings in this file`);
		checkFields(parsed, cx);
		const ask = async (missing: Missing) => (await import('./asking.js')).askFor(cx, missing);
		const { clock, sources } = cx;
		const input = await readInput(parsed.command, parsed, {
			env: io.env,
			settings,
			clock,
			sources,
			ask: cx.canAsk ? ask : null,
		});
		await protectProfile(parsed, cx);
		const ended = (reason: unknown, error: unknown) => {
			const end = parsed.command.whenStopped(reason, input);
			const isOwn = end !== reason || parsed.command.writes !== true || cx.dryRun;
			return isOwn ? end : withFate(reason, error);
		};
		const running = parsed.command.run(cx, input).catch(async (error: unknown) => {
			const isUnnamed = error instanceof MissingExtension && error.wanted === null;
			throw isUnnamed ? new MissingExtension(error.extension, `mailctl ${parsed.path.join(' ')}`) : error;
		});
		const code = await orAborted(running, { signal, ended });
		return finalCode(code ?? exits.done, listed, parsed.globals);
	} catch (error) {
		throw error instanceof OutputClosed
			? error
			: hinted(error, [...refusedToken(error, parsed, cx), ...missingDatabase(error, cx), ...takeHints()]);
	} finally {
		deadline.stop();
		await close();
		if (parsed.globals.verbose === true)
			await cx.note(`took ${Math.round((monotonicMicros() - start) / microsPerMs)} ms`);
	}
}

function refusedToken(error: unknown, { globals }: Run, { settings, io }: CommandContext): Hint[] {
	const { code, hint } = classify(error);
	return code === 'not_authenticated' && hint === null ? [refusedTokenHint(settings, globals, io.env)] : [];
}

function missingDatabase(error: unknown, { paths }: CommandContext): Hint[] {
	if (!(error instanceof DatabaseMissing)) return [];
	return [error.path === paths.database ? noDatabaseHint : mailctl('engine', 'init', '--db', error.path)];
}

/** Commands that need no target, or administer profiles, ignore the given target and a missing profile. */
function settle(parsed: Run, env: Env, paths: Paths, unread: string[]): Settings {
	const { command, globals } = parsed;
	const config = readBeside(parsed, env, paths, unread);
	if (command.profiles !== true && command.needsNoTarget !== true)
		return resolveSettings(globals, env, config, paths);
	const { profile: _, baseUrl: __, db: ___, ...others } = globals;
	const rest = { ...env, MAILCTL_PROFILE: undefined, MAILCTL_BASE_URL: undefined, MAILCTL_DB: undefined };
	const isThere = config.profile !== null && Object.hasOwn(config.profiles, config.profile);
	return resolveSettings(others, rest, isThere ? config : { ...config, profile: null }, paths);
}

function readBeside({ command, globals }: Run, env: Env, paths: Paths, unread: string[]): ConfigFile {
	try {
		return readConfig(paths);
	} catch (error) {
		const { db, baseUrl } = globals;
		const isProfileNamed = globals.profile !== undefined || Boolean(env['MAILCTL_PROFILE']);
		const isDatabaseNamed = db !== undefined || (Boolean(env['MAILCTL_DB']) && baseUrl === undefined);
		const isNeeded = isProfileNamed || !(isDatabaseNamed || command.needsNoConfig === true);
		if (!(error instanceof ConfigError) || (command.needsNoTarget !== true && isNeeded)) throw error;
		if (command.needsNoTarget !== true) unread.push(error.message);
		return { profile: null, profiles: {} };
	}
}

function checkFields({ command, path, globals }: Run, cx: CommandContext): void {
	const fields = parseFields(globals.fields);
	const { columns, writes } = command;
	if (fields === null || columns === 'own') return;
	if (columns === undefined && writes === true)
		throw new UsageError(`--fields has no effect on ${path.join(' ')}`);
	if (columns !== undefined && (writes === true || !isMachine(cx.out.format))) selectColumns(columns, fields);
}

function finalCode(code: ExitCode, listed: readonly Shown[], globals: RawGlobals): ExitCode {
	const isEmpty = listed.length > 0 && listed.every(({ shown }) => shown === 0);
	return code === exits.done && globals.exitEmpty === true && isEmpty ? exits.empty : code;
}

class Overdue extends Error {}

async function orAborted<T>(
	running: Promise<T>,
	{ signal, ended }: { signal: AbortSignal; ended: (reason: unknown, error: unknown) => unknown },
): Promise<T> {
	let timer: NodeJS.Timeout | undefined;
	const stopped = new Promise<never>((_, reject) => {
		const arm = () => {
			timer = setTimeout(() => reject(new Overdue()), graceMs);
		};
		if (signal.aborted) arm();
		else signal.addEventListener('abort', arm, { once: true });
	});
	try {
		return await Promise.race([running, stopped]);
	} catch (error) {
		if (!signal.aborted) throw error;
		throw error instanceof CliError && error.cause === signal.reason ? error : ended(signal.reason, error);
	} finally {
		clearTimeout(timer);
	}
}

function withFate(reason: unknown, error: unknown): unknown {
	if (!(reason instanceof CliError)) return reason;
	const isUnknown = error instanceof Overdue || (error instanceof ApiError && mayHaveHappened(error));
	if (!isUnknown && !isUndone(error)) return reason;
	const said = isUnknown ? 'may have been made' : 'was undone';
	const { code, exit, message, retryable } = reason;
	return new CliError(code, exit, `${message}: the change in progress ${said}`, {
		hint: isUnknown ? 'check before you run the command again' : 'run the command again',
		retryable,
		cause: reason,
	});
}

function isUndone(error: unknown): boolean {
	if (error instanceof StoreError) return error.code === 'stopped' || error.code === 'locked';
	if (!(error instanceof ApiError)) return false;
	return error.http?.status === 503 && error.retryAfterMs !== null && error.http.method !== 'GET';
}

function startDeadline(settings: Settings, env: Env) {
	const controller = new AbortController();
	const { signal } = controller;
	const deadline = settings.deadline.value;
	if (deadline === null) return { signal, leftMs: () => undefined, stop: () => {} };
	const endsAt = monotonicMicros() + deadline.ms * microsPerMs;
	const timer = setTimeout(() => {
		controller.abort(new DeadlinePassed(deadline.text));
		if (env[timedBy]) process.send?.('heard');
	}, deadline.ms);
	return {
		signal,
		leftMs: () => Math.max(0, (endsAt - monotonicMicros()) / microsPerMs),
		stop: () => clearTimeout(timer),
	};
}
