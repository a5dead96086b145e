// Loads the program with V8's code cache, because compiling takes 15 to 20 ms of a short command.
const {
	closeSync,
	existsSync,
	fstatSync,
	mkdirSync,
	openSync,
	readFileSync,
	readSync,
	statSync,
} = require('node:fs');
const { dirname, isAbsolute, join } = require('node:path');
const { Script } = require('node:vm');

const dist = join(__dirname, '../dist');

/** Node 22.1 and newer cache compiled code in the user's cache folder. For Node 20, the build writes it into dist/. */
function loadProgram() {
	// For source maps, let Node itself load the files.
	if (existsSync(compiledFolder(dist)) && !process.sourceMapsEnabled) return loader(dist).load('cli/main.js');
	const { enableCompileCache } = require('node:module');
	const cache = enableCompileCache === undefined ? null : userCache(process.env);
	if (cache !== null) enableCompileCache(cache);
	return require('../dist/cli/main.js');
}

/** Returns null without a safe folder. Node executes the cached code, so no other user may write to the folder. */
function userCache({ XDG_CACHE_HOME: cache = '', HOME: home = '' }) {
	const [base, folder] = isAbsolute(cache) ? [cache, cache] : [home, join(home, '.cache')];
	try {
		if (!isAbsolute(base) || statSync(base).uid !== process.getuid?.()) return null;
		const own = join(folder, 'mailctl/compiled');
		mkdirSync(own, { recursive: true, mode: 0o700 });
		return [folder, dirname(own), own].every(isOwn) ? own : null;
	} catch {
		return null;
	}
}

function isOwn(folder) {
	const { uid, mode } = statSync(folder);
	return uid === process.getuid() && (mode & 0o022) === 0;
}

/** V8 accepts code of any Node build with the same V8 version, so the name contains the exact Node version. */
function compiledFolder(folder) {
	return join(folder, `compiled-${process.version}-${process.platform}-${process.arch}`);
}

/** `load` takes the path of a chunk within the folder. `scripts` has the chunks loaded so far. */
function loader(folder) {
	const readWrapped = wrappingReader();
	const scripts = new Map();
	const loaded = new Map();
	const load = (path) => {
		const known = loaded.get(path);
		if (known !== undefined) return known.exports;
		const filename = join(folder, path);
		const { source, changedMs } = readWrapped(filename);
		const cachedData = compiled(join(compiledFolder(folder), path), changedMs);
		// The name goes into the code cache, so it must not depend on the folder of the installation.
		const script = new Script(source, {
			filename: join('dist', path),
			cachedData,
			columnOffset: -head.length,
		});
		scripts.set(path, script);
		const module = { exports: {} };
		loaded.set(path, module);
		const requireFrom = (name) => (name.startsWith('.') ? load(join(dirname(path), name)) : require(name));
		script.runInThisContext()(module.exports, requireFrom, module, filename, dirname(filename));
		return module.exports;
	};
	return { load, scripts };
}

const head = '(function (exports, require, module, __filename, __dirname) {';
/** Begins with a line break, because a file may end with a comment. `head` has none, to keep the line numbers. */
const tail = '\n})';

/** Wraps files in a function, as Node does. Reads them into one buffer, which saves a copy of each text. */
function wrappingReader() {
	let buffer = Buffer.alloc(0);
	return (filename) => {
		const file = openSync(filename);
		const { size, mtimeMs: changedMs } = fstatSync(file);
		const most = head.length + size + tail.length;
		if (buffer.length < most) {
			buffer = Buffer.allocUnsafe(Math.max(most, 512 * 1024));
			buffer.write(head);
		}
		const end = head.length + readSync(file, buffer, head.length, size);
		closeSync(file);
		buffer.write(tail, end);
		return { source: buffer.toString('utf8', 0, end + tail.length), changedMs };
	};
}

/** Undefined if the chunk is newer than its cache. V8 itself compares only the length of the source. */
function compiled(path, changedMs) {
	try {
		return changedMs > statSync(path).mtimeMs ? undefined : readFileSync(path);
	} catch {
		return undefined;
	}
}

module.exports = { compiledFolder, loadProgram, loader };
