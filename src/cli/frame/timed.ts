/** Runs a command with `--deadline` in a child process, because SQLite and regular expressions can block timers. */
import { spawn } from 'node:child_process';
import { unnamed } from './command-line.js';
import { printError } from './error-output.js';
import { DeadlinePassed } from './errors.js';
import { graceMs, peek, timedBy } from './globals.js';
import { createIo } from './io.js';
import { parseLimit } from './values.js';

const lastMs = 5_000;

export function runTimed(argv: readonly string[]): Promise<number> {
	const text = deadlineIn(argv);
	const io = createIo();
	const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', ...argv], {
		stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
		env: { ...io.env, [timedBy]: '1' },
	});
	let isOverdue = false;
	const kill = () => {
		isOverdue = child.kill('SIGKILL');
	};
	let timer = setTimeout(kill, millisecondsOf(text) + lastMs);
	child.on('message', () => {
		clearTimeout(timer);
		timer = setTimeout(kill, graceMs + lastMs);
	});
	const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
	// The terminal itself sends Ctrl-C to the child, so do not send SIGINT twice.
	for (const signal of signals)
		process.on(signal, () => (signal === 'SIGINT' && process.stdin.isTTY) || child.kill(signal));
	return new Promise((resolve, reject) => {
		child.on('error', reject);
		child.on('exit', (code, signal) => {
			clearTimeout(timer);
			if (code !== null) resolve(code);
			else if (isOverdue) {
				const { format } = peek(argv, io.env);
				resolve(printError(new DeadlinePassed(text), io, { format, debug: false, target: unnamed }));
			} else if (signal !== null) {
				process.removeAllListeners(signal);
				process.kill(process.pid, signal);
			}
		});
	});
}

function deadlineIn(argv: readonly string[]): string {
	const at = argv.findIndex((word) => /^--deadline(=|$)/.test(word));
	return argv[at]?.split('=')[1] ?? argv[at + 1] ?? '';
}

function millisecondsOf(text: string): number {
	try {
		return parseLimit(text, '--deadline');
	} catch {
		return 86_400_000;
	}
}
