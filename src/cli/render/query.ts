import { compile, type JSONValue, TreeInterpreter } from '@jmespath-community/jmespath';
import { UsageError } from '../frame/errors.js';
import type { OutStream } from '../frame/io.js';
import { cleanJsonLines } from './clean.js';
import { tsvCell } from './out.js';

export const queryFormats = ['json', 'ndjson', 'tsv'] as const;
type QueryFormat = (typeof queryFormats)[number];

export interface Query {
	readonly stream: OutStream;
	end(): Promise<void>;
}

/**
 * Throws `UsageError` for an invalid JMESPath expression (jmespath.org, "Specification"). If the expression fails on
 * the answer, `end` throws. With `onMisfit`, `end` prints the whole answer instead and calls `onMisfit`.
 */
export function openQuery(
	to: OutStream,
	{
		expression,
		format,
		onMisfit,
	}: {
		expression: string;
		format: QueryFormat;
		onMisfit: ((why: string) => Promise<void>) | null;
	},
): Query {
	const parsed = parse(expression);
	const pieces: (string | Uint8Array)[] = [];
	const passOn = async () => {
		for (const piece of pieces) await to.write(piece);
	};
	return {
		stream: {
			...{ isTTY: to.isTTY, columns: to.columns, raw: to.raw },
			write: async (piece) => void pieces.push(piece),
		},
		end: async () => {
			const value = parsedJson(Buffer.concat(pieces.map((piece) => Buffer.from(piece))).toString('utf8'));
			if (value === undefined) return passOn();
			let result: string;
			try {
				result = written(TreeInterpreter.search(parsed, value), format);
			} catch (error) {
				const why = `--query: ${reasonOf(error)}`;
				if (onMisfit === null) throw new UsageError(why, { cause: error });
				await passOn();
				return onMisfit(why);
			}
			await to.write(to.isTTY && format !== 'tsv' ? cleanJsonLines(result) : result);
		},
	};
}

function parse(expression: string) {
	try {
		return compile(expression, { enable_legacy_literals: true });
	} catch (error) {
		throw new UsageError(`--query "${expression}": ${reasonOf(error)}`, {
			hint: /^\w+=/.test(expression)
				? 'to add a parameter to a raw request, use --param KEY=VALUE'
				: 'https://jmespath.org/tutorial.html',
			cause: error,
		});
	}
}

function reasonOf(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}

/** Removes the prototype of objects, so that an expression cannot reach `constructor`. */
function parsedJson(text: string): JSONValue | undefined {
	try {
		return JSON.parse(text, (_, value) =>
			typeof value === 'object' && value !== null && !Array.isArray(value)
				? Object.assign(Object.create(null), value)
				: value,
		);
	} catch {
		return undefined;
	}
}

function written(value: JSONValue, format: QueryFormat): string {
	if (format === 'json') return `${JSON.stringify(value, null, 2)}\n`;
	const rows = Array.isArray(value) ? value : value === null ? [] : [value];
	if (format === 'ndjson') return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
	return rows.map((row) => `${cellsIn(row).map(tsvCell).join('\t')}\n`).join('');
}

function cellsIn(row: JSONValue): readonly JSONValue[] {
	if (Array.isArray(row)) return row;
	return typeof row === 'object' && row !== null ? Object.values(row) : [row];
}
