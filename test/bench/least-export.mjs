// The least that writes the subscribers of list 1 as CSV as a program of this design does: better-sqlite3 or the slices
// of a server, cells quoted where they need it, a file. It knows its six columns, checks nothing that it reads, and has
// no filter, no formulas, no progress, no other form. `node least-export.mjs DATABASE FILE`, and
// `node least-export.mjs --from URL TOKEN FILE`.
import { closeSync, openSync, writeSync } from 'node:fs';

const [source, ...words] = process.argv.slice(2);
const file = openSync(words.at(-1), 'w');
if (source === '--from') await copyFrom(words[0], words[1]);
else await copyOf(source);
closeSync(file);

/**
 * A thousand rows as one text, their cells joined by NUL, which no value has, and the rows by line feeds. Where a row is
 * read as six values this takes 1.5 times the CPU, with `meta` as one that is parsed here 1.3 to 1.5 times, where SQLite
 * quotes 1.2 times.
 */
async function copyOf(path) {
	const { default: Database } = await import('better-sqlite3');
	const db = new Database(path, { readonly: true });
	const cells = ['email_key', 'name', 'is_active', 'disable_reason', "meta ->> 'city'", "meta ->> 'age'"];
	const row = cells.map((cell) => `ifnull(${cell}, '')`).join(' || char(0) || ');
	const slice = db
		.prepare(
			`SELECT max(id), count(*), group_concat(line, char(10)) FROM (
				SELECT id, ${row} AS line FROM subscribers WHERE list_id = 1 AND id > ? ORDER BY id LIMIT 1000
			)`,
		)
		.raw();
	for (let after = 0; ; ) {
		const [last, count, text] = slice.get(after);
		if (count === 0) return;
		const isPlain = !/[",\r]/.test(text) && linesIn(text) === count;
		writeSync(file, isPlain ? `${text.replaceAll('\0', ',')}\n` : quoted(text));
		after = last;
	}
}

function linesIn(text) {
	let lines = 1;
	for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines += 1;
	return lines;
}

/** Between the last cell of a row and the address that begins the next one is the last line feed: addresses have none. */
function quoted(text) {
	const parts = text.split('\0');
	let lines = cell(parts[0]);
	for (let at = 1; at < parts.length; at += 1) {
		const part = parts[at];
		const end = at % 5 === 0 && at < parts.length - 1 ? part.lastIndexOf('\n') : -1;
		lines += end < 0 ? `,${cell(part)}` : `,${cell(part.slice(0, end))}\n${cell(part.slice(end + 1))}`;
	}
	return `${lines}\n`;
}

function cell(text) {
	return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Slices of a thousand tuples by key; the next one is asked for before this one is read, its key is in a header. */
async function copyFrom(url, token) {
	const { Pool } = await import('undici');
	const pool = new Pool(url);
	const ask = async (after) => {
		const path = `/ext/lists/1/tuples/?after=${after}&limit=1000`;
		const { statusCode, headers, body } = await pool.request({
			method: 'GET',
			path,
			headers: { 'X-Secure-Token': token },
		});
		if (statusCode !== 200) throw new Error(`${path}: ${statusCode}`);
		return { next: headers['x-next'], text: await body.text() };
	};
	for (let coming = ask(0); coming !== null; ) {
		const { next, text } = await coming;
		coming = next === undefined ? null : ask(next);
		// The request leaves before this answer is read.
		for (let turn = 0; turn < 2; turn += 1) await new Promise(setImmediate);
		const lines = JSON.parse(text).results.map(
			([email, name, is_active, disable_reason, { city, age }]) =>
				`${cell(email)},${cell(name)},${is_active ? 1 : 0},${disable_reason ?? ''},${cell(city ?? '')},${cell(age ?? '')}\n`,
		);
		writeSync(file, lines.join(''));
	}
	await pool.close();
}
