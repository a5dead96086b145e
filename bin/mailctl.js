#!/usr/bin/env node
// Checks the Node version before anything is loaded that an older one cannot parse, then hands over.
const [major, minor] = process.versions.node.split('.').map(Number);
const isSupported =
	major === 20 ? minor >= 19 : major === 22 ? minor >= 14 : major === 23 ? minor >= 6 : major > 23;
if (!isSupported) {
	process.stderr.write(
		`error: mailctl needs Node.js 20.19 or 22.14, or newer; this is ${process.versions.node}\n`,
	);
	process.exitCode = 2;
} else if (process.argv.some((word) => /^--deadline(=|$)/.test(word)) && !process.env.MAILCTL_TIMED) {
	runTimed();
} else {
	// Where it waits for what never comes, Node ends it: then its work is not known to be done.
	process.exitCode = 1;
	require('./program.js')
		.loadProgram()
		.main()
		.then((code) => {
			process.exitCode = code;
			// What a stopped command has left open is no reason to stay. All output has been taken by now.
			setTimeout(() => process.exit(), 2_000).unref();
		});
}

/**
 * A command in SQLite or in a regular expression hears of no deadline, and a watchdog can end it by a signal only
 * (SIGALRM). Its parent makes the exit code of that.
 */
function runTimed() {
	const { spawn } = require('node:child_process');
	const words = [...process.execArgv, ...process.argv.slice(1)];
	const child = spawn(process.execPath, words, {
		stdio: 'inherit',
		env: { ...process.env, MAILCTL_TIMED: '1' },
	});
	// A terminal sends Ctrl-C to both.
	for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
		process.on(signal, () => (signal === 'SIGINT' && process.stdin.isTTY) || child.kill(signal));
	child.on('exit', (code, signal) => {
		if (signal === null || signal === 'SIGALRM') process.exit(code ?? 12);
		process.removeAllListeners(signal);
		process.kill(process.pid, signal);
	});
}
