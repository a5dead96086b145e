#!/usr/bin/env node
// Check the version first, because an older Node cannot parse the other files.
const [major, minor] = process.versions.node.split('.').map(Number);
const isSupported =
	major === 20 ? minor >= 19 : major === 22 ? minor >= 14 : major === 23 ? minor >= 6 : major > 23;
if (!isSupported) {
	process.stderr.write(
		`error: mailctl needs Node.js 20.19 or 22.14, or newer; this is ${process.versions.node}\n`,
	);
	process.exitCode = 2;
} else {
	// The exit code if the event loop empties before the command has ended.
	process.exitCode = 1;
	const { main, timed } = require('./program.js').loadProgram();
	const hasDeadline = process.argv.some((word) => /^--deadline(=|$)/.test(word));
	(hasDeadline && !process.env.MAILCTL_TIMED ? timed() : main()).then((code) => {
		process.exitCode = code;
		// Handles that an interrupted command left open would keep Node running. All output is written by now.
		setTimeout(() => process.exit(), 2_000).unref();
	});
}
