/**
 * The calls of the goldens: `test/goldens/calls/NAME.calls`, one per line, in the order of the file names. A line is
 *
 *     # a heading, which the golden contains
 *     mailctl lists list
 *     local served: mailctl messages list          runs only in these ways
 *     100: mailctl lists list                      on a terminal of 100 columns, where `<<< 'a\nb'` is typed line by line
 *     bare: mailctl profile list                   without a target
 *     SIGINT listening: mailctl webhooks listen    sends SIGINT or SIGTERM when stderr shows the word
 *     message = mailctl messages list …            {message} is from then on the first word of its output
 *     cat people.csv.rejects.csv                   prints a file that a call has written
 *     mails                                        prints the mails received since the last such line
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Call } from './program.js';
import { parseShellLine, type ShellLine } from './shell-line.js';

export type WayName = 'local' | 'served' | 'foreign';

export interface ScriptCall extends ShellLine {
	kind: 'call';
	line: string;
	ways: readonly WayName[];
	columns: number | null;
	namesNoTarget: boolean;
	signal: NonNullable<Call['signal']> | null;
	keepAs: string | null;
}

export type ScriptLine =
	| ScriptCall
	| { kind: 'heading'; text: string }
	| { kind: 'file'; line: string; ways: readonly WayName[]; path: string }
	| { kind: 'mails'; line: string; ways: readonly WayName[] };

const folder = join(import.meta.dirname, '../../goldens/calls');
const wayNames: readonly WayName[] = ['local', 'served', 'foreign'];

export function readScript(): ScriptLine[] {
	const names = readdirSync(folder).sort();
	return names.flatMap((name) => parseScript(readFileSync(join(folder, name), 'utf8')));
}

function parseScript(text: string): ScriptLine[] {
	return text
		.split('\n')
		.filter((line) => line.trim() !== '')
		.map(parseLine);
}

function parseLine(line: string): ScriptLine {
	if (line.startsWith('#')) return { kind: 'heading', text: line };
	const [, marks = '', call = ''] = /^((?:[\w ]+: )*)(.*)$/.exec(line) ?? [];
	const named = wayNames.filter((way) => marks.includes(way));
	const ways = named.length === 0 ? wayNames : named;
	if (call === 'mails') return { kind: 'mails', line: call, ways };
	const path = /^cat (\S+)$/.exec(call)?.[1];
	return path === undefined ? parseCall(call, marks, ways) : { kind: 'file', line: call, ways, path };
}

function signalOf(marks: string): ScriptCall['signal'] {
	const [, name, at = ''] = /\b(SIGINT|SIGTERM) (\w+)/.exec(marks) ?? [];
	return name === 'SIGINT' || name === 'SIGTERM' ? { name, at } : null;
}

function parseCall(call: string, marks: string, ways: readonly WayName[]): ScriptCall {
	const [, keepAs = null, words = ''] = /^(?:(\w+) = )?(.*)$/.exec(call) ?? [];
	const columns = /\b\d+\b/.exec(marks)?.[0];
	return {
		...parseShellLine(words),
		kind: 'call',
		line: `${columns === undefined ? '' : `${columns} columns: `}${call}`,
		ways,
		namesNoTarget: /\bbare\b/.test(marks),
		columns: columns === undefined ? null : Number(columns),
		signal: signalOf(marks),
		keepAs,
	};
}
