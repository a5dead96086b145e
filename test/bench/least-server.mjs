// The least that answers a page of 100 and stores an address as a server of this design does: node:http, SQLite in a
// thread of its own, what comes in a turn of the event loop as one message and one commit. It checks nothing: no token, no
// query, no field. `node least-server.mjs PORT DATABASE`; it reads subscribers of DATABASE and writes beside it.
import { createServer } from 'node:http';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import Database from 'better-sqlite3';

if (isMainThread) listen(Number(process.argv[2]), process.argv[3]);
else answerFrom(workerData);

function listen(port, path) {
	const [reader, writer] = ['read', 'write'].map((role) => openThread({ role, path }));
	createServer((request, response) => {
		const answer = (status) => (text) => {
			response.writeHead(status, {
				'Content-Type': 'application/json',
				'Content-Length': Buffer.byteLength(text),
			});
			response.end(text);
		};
		if (request.method === 'GET') return reader(200, answer(200));
		let body = '';
		request.setEncoding('utf8');
		request.on('data', (text) => {
			body += text;
		});
		request.on('end', () => writer(JSON.parse(body).email, answer(201)));
	}).listen(port, '127.0.0.1');
}

function openThread(data) {
	const worker = new Worker(new URL(import.meta.url), { workerData: data });
	const waiting = [];
	let queued = [];
	worker.on('message', (answers) => {
		for (const text of answers) waiting.shift()(text);
	});
	return (command, resolve) => {
		waiting.push(resolve);
		queued.push(command);
		if (queued.length > 1) return;
		setImmediate(() => {
			worker.postMessage(queued);
			queued = [];
		});
	};
}

function answerFrom({ role, path }) {
	const answer = role === 'read' ? reading(path) : writing(`${path}.least`);
	parentPort.on('message', (commands) => parentPort.postMessage(answer(commands)));
}

/** The keys of a subscriber, each row as a text of JSON: the fastest of the ways that were measured. */
function reading(path) {
	const db = new Database(path, { readonly: true });
	const time = (at) => `strftime('%Y-%m-%dT%H:%M:%S', ${at} / 1000000, 'unixepoch')`;
	const page = db
		.prepare(
			`SELECT '{"id":' || id || ',"email":' || json_quote(email) || ',"name":' || json_quote(name) || ',"is_active":' ||
				iif(is_active, 'true', 'false') || ',"disable_reason":' || json_quote(disable_reason) || ',"meta":' || meta ||
				',"date_created":"' || ${time('created_at')} || '"}'
			FROM subscribers WHERE list_id = 1 ORDER BY id LIMIT 100 OFFSET ?`,
		)
		.pluck();
	return (offsets) => offsets.map((offset) => `{"count":100000,"results":[${page.all(offset).join(',')}]}`);
}

/** With the unique index that any list of addresses needs. */
function writing(path) {
	const db = new Database(path);
	db.pragma('journal_mode = WAL');
	db.pragma('synchronous = FULL');
	db.exec('CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, email TEXT UNIQUE, created_at INTEGER)');
	const insert = db.prepare('INSERT INTO rows (email, created_at) VALUES (?, ?)');
	return db.transaction((emails) =>
		emails.map((email) => {
			const { lastInsertRowid: id } = insert.run(email, Date.now());
			return JSON.stringify({ id, email, name: '', is_active: true, disable_reason: null, meta: {} });
		}),
	);
}
