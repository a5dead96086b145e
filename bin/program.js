// Loads the program with what V8 compiled of it before: compiling it is 15 to 20 ms of a short command.
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

/** From Node 22.1 on Node keeps compiled code, in a folder of the user; for Node 20 the build does, beside the program. */
function loadProgram() {
	// Its stacks are by source maps, which Node reads for what it loaded itself.
	if (existsSync(compiledFolder(dist)) && !process.sourceMapsEnabled) return loader(dist).load('cli/main.js');
	const { enableCompileCache } = require('node:module');
	const cache = enableCompileCache === undefined ? null : userCache(process.env);
	if (cache !== null) enableCompileCache(cache);
	return require('../dist/cli/main.js');
}

/** Null: there is no such folder of this user, or none can be made. What lies in it is run, so it is for its owner only. */
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

/** Nobody else can put a file in it. */
function isOwn(folder) {
	const { uid, mode } = statSync(folder);
	return uid === process.getuid() && (mode & 0o022) === 0;
}

/** Of one Node alone: V8 refuses code of another version, but not of another build of its own. */
function compiledFolder(folder) {
	return join(folder, `compiled-${process.version}-${process.platform}-${process.arch}`);
}

/** Loads the chunks of a build by their paths in its folder; `scripts` are those loaded so far. */
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
		// V8 keeps the name that was given at the build: one that is true wherever the folder lies.
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
/** In a line of its own, for a file ends with the name of its source map; `head` has none, so that positions stay. */
const tail = '\n})';

/** Reads files as the functions that Node makes of them. Through one buffer: joined texts would be copied once more. */
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

/** Undefined: there is none that can be read, or the chunk was changed since. V8 compares lengths alone, and compiles what it refuses. */
function compiled(path, changedMs) {
	try {
		return changedMs > statSync(path).mtimeMs ? undefined : readFileSync(path);
	} catch {
		return undefined;
	}
}

module.exports = { compiledFolder, loadProgram, loader };
