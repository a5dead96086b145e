/** Where a call begins and ends: streams in, exit code out. Nothing here ever ends the process. */
import { mailctl, type NamedTarget, unnamed } from './frame/command-line.js';
import type { Connect } from './frame/connection.js';
import type { RunOptions } from './frame/context.js';
import { printError } from './frame/error-output.js';
import { Interrupted, UsageError } from './frame/errors.js';
import { type ExitCode, exits } from './frame/exit.js';
import { globalFlags, isMachine, operands, peek } from './frame/globals.js';
import { commandsFor, didYouMean, fitHelp, rootHelp, verbsFor } from './frame/help.js';
import { createIo, type IoParts, printPage } from './frame/io.js';
import { loadNode, tree } from './tree.js';

declare const __VERSION__: string;

export interface MainOptions extends IoParts {
	/** Words after the program's name. */
	argv?: readonly string[];
	/** Stands in for Ctrl-C and SIGTERM; without it the process's own signals count. */
	interrupts?: AbortSignal;
	/** Replaces the composition root. */
	connect?: Connect;
}

/** Runs one command line; resolves to its exit code, whatever happens. */
export async function main(options: MainOptions = {}): Promise<number> {
	const argv = options.argv ?? process.argv.slice(2);
	const io = createIo(options);
	const signals = options.interrupts === undefined ? catchSignals() : null;
	signals?.hold();
	const interrupts = options.interrupts ?? signals?.signal ?? new AbortController().signal;
	let target: NamedTarget = unnamed;
	const { debug, ...peeked } = peek(argv, io.env);
	let { format } = peeked;
	const onSettled: RunOptions['onSettled'] = (settled) => {
		({ target, format } = settled);
	};
	try {
		return await dispatch(argv, {
			io,
			interrupts,
			signals,
			connect: options.connect ?? null,
			onSettled,
		});
	} catch (error) {
		return await printError(error, io, { format, debug, target });
	} finally {
		signals?.release();
	}
}

/** Runs a command line that has `--deadline`. */
export async function timed(): Promise<number> {
	const { runTimed } = await import('./frame/timed.js');
	return runTimed(process.argv.slice(2));
}

async function dispatch(argv: readonly string[], options: RunOptions): Promise<ExitCode> {
	const [word] = operands(argv);
	if (word === undefined) return dispatchBare(argv, options);
	const entry = tree.find(({ name }) => name === word);
	if (entry === undefined) throw (await misplacedOption(argv)) ?? (await unknownCommand(word));
	const { invoke } = await import('./frame/invoke.js');
	return invoke(entry, argv, options);
}

/** Options without a command: the version and the overview, which load no command where a person reads them. */
async function dispatchBare(argv: readonly string[], options: RunOptions): Promise<ExitCode> {
	const { io } = options;
	const isVersion = argv.includes('--version');
	const isOverview = argv.length === 0 || argv.includes('-h') || argv.includes('--help');
	const isText = !isMachine(peek(argv, isVersion ? io.env : {}).format);
	if (isText && isVersion) {
		await io.stdout.write(`${__VERSION__}\n`);
		return exits.done;
	}
	if (isText && isOverview) {
		await printPage(io, fitHelp(rootHelp(tree), io.stdout), !argv.includes('--no-pager'));
		return exits.done;
	}
	const name = isVersion ? 'version' : 'help';
	const others = argv.filter((one) => !['--version', '-h', '--help'].includes(one));
	const entry = tree.find((one) => one.name === name);
	if (entry === undefined) throw new Error(`there is no command ${name}`);
	const { invoke } = await import('./frame/invoke.js');
	return invoke(entry, [name, ...others], options);
}

/**
 * The word that is no command may be the value of a command's own option that stands before it: `mailctl --list 3
 * subscribers list`. Null: it is none. Behind the command it is judged as any other option; a secret is not repeated.
 */
async function misplacedOption(argv: readonly string[], left = argv.length): Promise<UsageError | null> {
	const at = argv.findIndex((_, index) => operands(argv.slice(0, index + 1)).length > 0);
	const [flag = '', value = ''] = argv.slice(Math.max(0, at - 1), at + 1);
	if (at < 1 || !/^--?[a-z]/i.test(flag) || flag.includes('=') || globalFlags.has(flag)) return null;
	const others = argv.toSpliced(at - 1, 2);
	const end = others.includes('--') ? others.indexOf('--') : others.length;
	const moved = others.toSpliced(end, 0, flag, value);
	const entry = tree.find(({ name }) => name === operands(others)[0]);
	const { parse, secretHint } = await import('./frame/parse.js');
	if (entry !== undefined) {
		parse(await loadNode(entry), moved);
		return new UsageError(`${flag} stands before its command: only options of all commands may`, {
			hint: mailctl(...moved),
		});
	}
	const next = left > 0 ? await misplacedOption(moved, left - 1) : null;
	const hint = secretHint(flag) ?? didYouMean(flag, [...globalFlags]) ?? mailctl('--help');
	return next ?? new UsageError(`unknown option '${flag}'`, { hint });
}

/**
 * A verb without its group is the likeliest slip: `mailctl import` means `mailctl subscribers import`. The hint has no
 * commands: the other arguments and the target are unknown here.
 */
async function unknownCommand(word: string): Promise<UsageError> {
	const nodes = await Promise.all(tree.map(async (entry) => ({ entry, node: await loadNode(entry) })));
	const groups = nodes.flatMap(({ entry, node }) => {
		const known = 'commands' in node ? node.commands.map(({ name }) => name) : [];
		return verbsFor(word, known)
			.slice(0, 1)
			.map((verb) => `${entry.name} ${verb}`);
	});
	const meant = groups.length > 0 ? groups : commandsFor(word);
	const names = tree.map(({ name }) => name);
	const hint = meant.length > 0 ? meantIn(meant) : (didYouMean(word, names) ?? mailctl('--help'));
	return new UsageError(`unknown command "${word}"`, { hint });
}

/** `did you mean lists list, subscribers list, fields list? 8 more groups have it`. */
function meantIn(groups: readonly string[]): string {
	const more = groups.length - mostMeant;
	const meant = `did you mean ${groups.slice(0, mostMeant).join(', ')}?`;
	return more <= 0 ? meant : `${meant} ${more} more ${more === 1 ? 'group has' : 'groups have'} it`;
}

const mostMeant = 3;

/** The first signal asks the command to stop; the second one is no longer caught and ends the process. */
function catchSignals(): { signal: AbortSignal; release: () => void; hold: () => void } {
	const controller = new AbortController();
	const release = () => {
		process.off('SIGINT', onSignal);
		process.off('SIGTERM', onSignal);
	};
	const hold = () => {
		process.on('SIGINT', onSignal);
		process.on('SIGTERM', onSignal);
	};
	const onSignal = (name: NodeJS.Signals) => {
		release();
		// The terminal has written ^C.
		if (name === 'SIGINT' && process.stderr.isTTY && process.env['TERM'] !== 'dumb')
			process.stderr.write('\r\x1b[K');
		controller.abort(new Interrupted(name === 'SIGTERM' ? 'SIGTERM' : 'SIGINT'));
	};
	return { signal: controller.signal, release, hold };
}
