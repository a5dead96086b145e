import { cpSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { programPath } from '../support/cli.js';
import {
	asked,
	databaseCalls as calls,
	type Ended,
	expectHappened,
	expectSound,
	type Fault,
	faultsOver,
	hasStrace,
	measurePoints,
	runNode,
	timeLimit,
} from '../support/fault-points.js';
import { messageIdIn, type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

const kills = asked('MAILCTL_KILLS', 2);
const faults = asked('MAILCTL_FAULTS', 3);
const people = 1_500;
/** How many messages a kill may repeat: 100 unrecorded outcomes and 5 messages in flight. */
const window = 105;
const ann = 'p7@example.com';

interface Work {
	name: string;
	words: readonly string[];
	before: readonly (readonly string[])[];
	/** Work in one transaction is never `in part`. */
	look(db: Database.Database): 'done' | 'not done' | 'in part';
	/** The exit codes of a complete run, including a second run after the work was done. */
	ends: readonly number[];
}

const number = (db: Database.Database, sql: string) => Number(db.prepare(sql).pluck().get());
const importing = ['subscribers', 'import', 'people.csv', '--list', 'Readers', '--batch-size', '100'];
const mail = ['--from', 'news@example.com', '--subject', 'Hi #name#', '--text', 'Hello #name#'];
const consent = ['--yes', '--expect-count', String(people)];

function countPeople(db: Database.Database): number {
	const count = number(db, 'SELECT count(*) FROM subscribers WHERE list_id = 1');
	const told = db.prepare('SELECT sum(active + inactive) FROM list_counters WHERE list_id = 1').pluck().get();
	expect(told ?? 0).toBe(count);
	return count;
}

function share(count: number): 'done' | 'not done' | 'in part' {
	if (count === 0) return 'not done';
	return count === people ? 'done' : 'in part';
}

function expectOneStroke(left: number): 'done' | 'not done' {
	expect([0, people]).toContain(left);
	return left === 0 ? 'done' : 'not done';
}

const works: readonly Work[] = [
	{
		name: 'an import',
		before: [],
		words: [...importing, '--resume'],
		look: (db) => share(countPeople(db)),
		ends: [0],
	},
	{
		name: 'the clearing of a list',
		before: [importing],
		words: ['lists', 'clear', 'Readers', '--confirm', 'Readers'],
		look: (db) => expectOneStroke(countPeople(db)),
		ends: [0],
	},
	{
		name: 'the deletion of a list',
		before: [importing],
		words: ['lists', 'delete', 'Readers', '--confirm', 'Readers'],
		look: (db) => {
			expect(number(db, 'SELECT count(*) FROM lists') * people).toBe(countPeople(db));
			return expectOneStroke(countPeople(db));
		},
		ends: [0, 3],
	},
	{
		name: 'an erasure',
		before: [importing, ['send', ...mail, '--to', ann, '--context', 'name=Ann']],
		words: ['subscribers', 'erase', ann, '--confirm', ann],
		look: (db) => {
			const found = number(db, `SELECT count(*) FROM subscribers WHERE email_key = '${ann}'`);
			expect(countPeople(db)).toBe(people - 1 + found);
			expect(number(db, `SELECT count(*) FROM messages WHERE to_key = '${ann}'`)).toBe(found);
			return found === 0 ? 'done' : 'not done';
		},
		ends: [0],
	},
	{
		name: 'a campaign',
		before: [],
		words: ['send', ...mail, '--csv', 'people.csv', '--campaign', 'j', ...consent],
		look: (db) => share(number(db, "SELECT count(*) FROM messages WHERE state = 'sent'")),
		ends: [0],
	},
];

interface Place {
	folder: string;
	path: string;
	env: NodeJS.ProcessEnv;
}

function placeIn(folder: string): Place {
	const path = join(folder, 'news.db');
	const env = { PATH: process.env['PATH'] ?? '', HOME: folder, TERM: 'dumb', MAILCTL_DB: path };
	return { folder, path, env };
}

const newFolder = () => mkdtempSync(join(tmpdir(), 'mailctl-sweep-'));
const runIn = ({ folder, env }: Place, words: readonly string[], fault: Fault | null): Promise<Ended> =>
	runNode([programPath, ...words], fault, { env, cwd: folder });

async function prepare({ before }: Work, sink: SmtpSink): Promise<() => Place> {
	const model = placeIn(newFolder());
	const lines = Array.from({ length: people }, (_, row) => `p${row}@example.com,P${row}`);
	writeFileSync(join(model.folder, 'people.csv'), `email,name\n${lines.join('\n')}\n`);
	const smtp = `smtp://127.0.0.1:${sink.port}`;
	const first = [
		['engine', 'init', '--sender', 'news@example.com', '--smtp', smtp],
		['lists', 'create', '--name', 'Readers', '--email-reason', 'r'],
	];
	for (const words of [...first, ...before])
		expect([words, await runIn(model, words, null)]).toMatchObject([words, { code: 0 }]);
	return () => {
		const folder = newFolder();
		cpSync(model.folder, folder, { recursive: true });
		return placeIn(folder);
	};
}

function look(work: Work, { path }: Place) {
	expectSound(path);
	const db = new Database(path, { readonly: true });
	const found = work.look(db);
	db.close();
	return found;
}

function expectPlain({ stderr }: Ended): void {
	expect(stderr).not.toMatch(/^ {4}at |\.js:\d|Error:/m);
	expect(stderr).toMatch(/^(error|warning): /m);
}

async function expectComplete(work: Work, place: Place): Promise<void> {
	const end = await runIn(place, work.words, null);
	expect(work.ends, end.stderr).toContain(end.code);
	expect(look(work, place)).toBe('done');
	expectForgotten(work, place);
}

function expectForgotten(work: Work, place: Place): void {
	if (work.name !== 'an erasure') return;
	for (const name of readdirSync(place.folder).filter((one) => one.startsWith('news.db')))
		expect([name, readFileSync(join(place.folder, name)).includes(ann)]).toEqual([name, false]);
}

async function tryRound(work: Work, place: Place, fault: Fault): Promise<number | null> {
	const what = JSON.stringify(fault);
	const end = await runIn(place, work.words, fault);
	expect(fault.does === 'KILL' ? [0, null] : [0, 74], `${what}: ${end.stderr}`).toContain(end.code);
	if (end.code === 74) expectPlain(end);
	const found = look(work, place);
	if (end.code === 0) {
		expect(found, what).toBe('done');
		expectForgotten(work, place);
	}
	await expectComplete(work, place);
	return end.code;
}

describe.skipIf(!hasStrace).each(works)('$name (needs strace)', (work) => {
	it(
		'is completed by the next run after a kill or disk error at any moment',
		async () => {
			const sink = await startSmtpSink();
			onTestFinished(() => sink.close());
			const begin = await prepare(work, sink);
			const { points, run } = await measurePoints(
				{ calls },
				[programPath, ...work.words],
				contextOf(begin()),
			);
			expect(run).toMatchObject({ code: 0 });
			const codes: (number | null)[] = [];
			let repeated = 0;
			for (const fault of faultsOver(points, { kills, faults })) {
				const before = sink.received.length;
				codes.push(await tryRound(work, begin(), fault));
				if (work.name !== 'a campaign') continue;
				const what = JSON.stringify(fault);
				const ids = sink.received.slice(before).map(({ raw }) => messageIdIn(raw));
				expect(new Set(ids).size, what).toBe(people);
				expect(ids.length - people, what).toBeLessThanOrEqual(window);
				repeated = Math.max(repeated, ids.length - people);
			}
			const what = `${work.name}, ${points.length} calls, at most ${repeated} repeated`;
			expectHappened(what, codes, { kills, faults });
		},
		timeLimit,
	);
});

const contextOf = ({ folder, env }: Place) => ({ cwd: folder, env });
