/** As much of a TAP 14 reader as the reports of `smoke` need; throws for what it cannot read. */

export interface TapTest {
	ok: boolean;
	number: number;
	description: string;
	/** The reason of a SKIP; null: it ran. */
	skip: string | null;
	data: Record<string, unknown>;
}

export interface Tap {
	version: number;
	planned: number;
	tests: TapTest[];
	comments: string[];
}

export function parseTap(text: string): Tap {
	const [head = '', plan = '', ...lines] = text.trimEnd().split('\n');
	const version = Number(/^TAP version (\d+)$/.exec(head)?.[1]);
	const planned = Number(/^1\.\.(\d+)$/.exec(plan)?.[1]);
	const tap: Tap = { version, planned, tests: [], comments: [] };
	for (let at = 0; at < lines.length; at += 1) {
		const line = lines[at] ?? '';
		if (line === '  ---') {
			const end = lines.indexOf('  ...', at);
			const last = tap.tests.at(-1);
			if (end === -1 || last === undefined) throw new Error(`no end of the block at: ${line}`);
			last.data = parseYaml(lines.slice(at + 1, end).map((one) => one.slice(2)));
			at = end;
		} else if (line.startsWith('#')) tap.comments.push(line);
		else tap.tests.push(parseTest(line));
	}
	return tap;
}

function parseTest(line: string): TapTest {
	const [, not, number, rest = ''] = /^(not )?ok (\d+) - (.*)$/.exec(line) ?? [];
	if (number === undefined) throw new Error(`no test point: ${line}`);
	// A directive begins at a `#` that no backslash stands before.
	const [, description = '', skip] = /^((?:[^\\#]|\\.)*?)(?: # SKIP (.*))?$/.exec(rest) ?? [];
	return {
		ok: not === undefined,
		number: Number(number),
		description: unescaped(description),
		skip: skip === undefined ? null : unescaped(skip),
		data: {},
	};
}

function unescaped(text: string): string {
	return text.replaceAll(/\\(.)/g, '$1');
}

/** Keys with JSON values, and lists of them. */
function parseYaml(lines: readonly string[]): Record<string, unknown> {
	const found: Record<string, unknown> = {};
	let list: unknown[] = [];
	for (const line of lines) {
		const item = /^ {2}- (.*)$/.exec(line)?.[1];
		const [, key = '', value = ''] = /^(\w+):(?: (.*))?$/.exec(line) ?? [];
		if (item !== undefined) list.push(JSON.parse(item));
		else if (key === '') throw new Error(`no YAML: ${line}`);
		else if (value === '') {
			list = [];
			found[key] = list;
		} else found[key] = /^["\d]/.test(value) ? JSON.parse(value) : value;
	}
	return found;
}
