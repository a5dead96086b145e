import { loadNode } from './frame/command.js';
import { mailctl, type NamedTarget, unnamed } from './frame/command-line.js';
import type { Connect } from './frame/connection.js';
import type { MainOptions, RunOptions } from './frame/context.js';
import { printError } from './frame/error-output.js';
import { Interrupted, UsageError } from './frame/errors.js';
import { type ExitCode, exits } from './frame/exit.js';
import { globalFlags, isMachine, operands, peek } from './frame/globals.js';
import { commandsFor, fitHelp, rootHelp, verbsFor } from './frame/help.js';
import { createIo, printPage } from './frame/io.js';
import { didYouMean } from './frame/words.js';
import { tree } from './tree.js';

declare const __VERSION__: string;

export async function main(options: MainOptions = {}): Promise<number> {
	const argv = options.argv ?? process.argv.slice(2);
	const io = createIo(options);
	const signals = options.interrupts === undefined ? catchSignals() : null;
	signals?.hold();
	const interrupts = options.interrupts ?? signals?.signal ?? new AbortController().signal;
	let target: NamedTarget = unnamed;
	const { debug, ...peeked } = peek(argv, io.env);
	let { format } = peeked;
	try {
		return await dispatch(argv, {
			...{ io, interrupts, signals, tree, main },
			connect: options.connect ?? connect,
			onSettled: (settled) => {
				({ target, format } = settled);
			},
		});
	} catch (error) {
		return await printError(error, io, { format, debug, target });
	} finally {
		signals?.release();
	}
}

export async function timed(): Promise<number> {
	const { runTimed } = await import('./frame/timed.js');
	return runTimed(process.argv.slice(2));
}

const connect: Connect = async (target, dependencies) => {
	const root = await import('./connect.js');
	return root.connect(target, dependencies);
};

async function dispatch(argv: readonly string[], options: RunOptions): Promise<ExitCode> {
	const { io } = options;
	const word = operands(argv)[0]?.word;
	const isVersion = word === undefined && argv.includes('--version');
	// If people read the output, print the overview or version without loading a command.
	if (word === undefined && !isMachine(peek(argv, isVersion ? io.env : {}).format)) {
		if (isVersion) {
			await io.stdout.write(`${__VERSION__}\n`);
			return exits.done;
		}
		if (argv.length === 0 || argv.includes('-h') || argv.includes('--help')) {
			await printPage(io, await fitHelp(rootHelp(tree), io.stdout), !argv.includes('--no-pager'));
			return exits.done;
		}
	}
	const name = word ?? (isVersion ? 'version' : 'help');
	const entry = tree.find((one) => one.name === name);
	if (entry === undefined)
		throw unknownOption(argv.slice(0, argv.indexOf(name))) ?? (await unknownCommand(name));
	const others = argv.filter((one) => !['--version', '-h', '--help'].includes(one));
	const { invoke } = await import('./frame/run.js');
	return invoke(entry, word === undefined ? [name, ...others] : argv, options);
}

/** The word after an unknown option may be a secret, so the error does not quote it. */
function unknownOption(words: readonly string[]): UsageError | null {
	const flags = words.flatMap((word) => /^--?[a-z][^=]*/i.exec(word)?.[0] ?? []);
	const flag = flags.find((one) => !globalFlags.has(one));
	if (flag === undefined) return null;
	const hint = didYouMean(flag, [...globalFlags]) ?? 'put the options of a command after its name';
	return new UsageError(`unknown option '${flag}'`, { hint });
}

/** Users most often forget the group: `mailctl import` means `mailctl subscribers import`. */
async function unknownCommand(word: string): Promise<UsageError> {
	const nodes = await Promise.all(tree.map(loadNode));
	const groups = nodes.flatMap((node) => {
		const verbs = 'commands' in node ? node.commands.map(({ name }) => name) : [];
		return verbsFor(word, verbs)
			.slice(0, 1)
			.map((verb) => `${node.name} ${verb}`);
	});
	const meant = (groups.length > 0 ? groups : commandsFor(word)).slice(0, 3);
	const names = tree.map(({ name }) => name);
	const near = meant.length > 0 ? `did you mean ${meant.join(', ')}?` : didYouMean(word, names);
	return new UsageError(`unknown command "${word}"`, { hint: near ?? mailctl('--help') });
}

/** The first signal asks the command to stop. The second one is not caught, so it ends the process. */
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
		// Removes the ^C that the terminal has written.
		if (name === 'SIGINT' && process.stderr.isTTY && process.env['TERM'] !== 'dumb')
			process.stderr.write('\r\x1b[K');
		controller.abort(new Interrupted(name === 'SIGTERM' ? 'SIGTERM' : 'SIGINT'));
	};
	return { signal: controller.signal, release, hold };
}
