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
} else {
	// Where it waits for what never comes, Node ends it: then its work is not known to be done.
	process.exitCode = 1;
	const { main, timed } = require('./program.js').loadProgram();
	const hasDeadline = process.argv.some((word) => /^--deadline(=|$)/.test(word));
	(hasDeadline && !process.env.MAILCTL_TIMED ? timed() : main()).then((code) => {
		process.exitCode = code;
		// What a stopped command has left open is no reason to stay. All output has been taken by now.
		setTimeout(() => process.exit(), 2_000).unref();
	});
}
