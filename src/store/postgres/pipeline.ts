/**
 * Sends statements on one connection, in order. Statements of one turn of the event loop share a round trip, and a
 * repeated text is parsed once. Statements have no names, so a pooler may give the next transaction another session.
 * The protocol is in PostgreSQL, 55.2.3 "Extended Query".
 */
import { nextTick } from 'node:process';
import type { ClientBase, Connection, FieldDef, Submittable } from 'pg';
import { codeOf } from '../../api/errors.js';
import type { SqlValue } from '../core/sql.js';

export interface Answer {
	names: readonly string[];
	rows: unknown[][];
	changes: number;
	tag: string;
}

export interface Pipeline {
	ask(text: string, values?: readonly SqlValue[]): Promise<Answer>;
	readonly underWay: number | null;
}

interface Question {
	text: string;
	values: readonly SqlValue[];
	answer(answer: Answer): void;
	fail(error: unknown): void;
}

/** Values of this size or more start the round trip at once, instead of at the end of the turn. */
const largeOctets = 32 * 1024;

export function createPipeline(client: ClientBase): Pipeline {
	let open: RoundTrip | null = null;
	let trips = 0;
	let ended = 0;
	const onEnd = () => {
		ended += 1;
	};
	let cause: unknown = null;
	const begin = (): RoundTrip => {
		const trip = new RoundTrip(onEnd);
		trips += 1;
		// Start at the end of the tick, so that all statements of the tick share the round trip.
		nextTick(() => {
			open = null;
			trip.end();
			trip.start(client);
		});
		return trip;
	};
	return {
		ask: (text, values = []) =>
			new Promise((answer, fail) => {
				const trip = open ?? begin();
				open = trip;
				if (text.startsWith('BEGIN')) cause = null;
				const explain = (error: unknown) => {
					const isAborted = codeOf(error) === '25P02';
					if (cause === null || !isAborted) cause = error;
					fail(cause);
				};
				trip.add({ text, values, answer, fail: explain });
				if (octetsOf(values) >= largeOctets) trip.start(client);
			}),
		get underWay() {
			return ended < trips ? trips : null;
		},
	};
}

function octetsOf(values: readonly SqlValue[]): number {
	return values.reduce<number>((sum, value) => {
		if (typeof value === 'string') return sum + value.length;
		return value instanceof Uint8Array ? sum + value.byteLength : sum;
	}, 0);
}

/** At COMMIT the server rolls back a failed transaction without reporting an error. */
class Aborted extends Error {
	readonly code = '25P02';
}

interface Column {
	name: string;
	parse(text: string): unknown;
}

/** pg's client calls `submit`, then one method for each message of the server. */
class RoundTrip implements Submittable {
	readonly #questions: Question[] = [];
	readonly #onEnd: () => void;
	readonly #answers: Answer[] = [];
	#columns: readonly Column[] = [];
	#rows: unknown[][] = [];
	#isStarted = false;
	#connection: Connection | null = null;
	#isEnded = false;
	#sent = 0;
	#parsed: string | null = null;

	constructor(onEnd: () => void) {
		this.#onEnd = onEnd;
	}

	start(client: ClientBase): void {
		if (this.#isStarted) return;
		this.#isStarted = true;
		client.query(this);
	}

	add(question: Question): void {
		this.#questions.push(question);
		this.#send();
	}

	end(): void {
		this.#isEnded = true;
		this.#send();
	}

	submit(connection: Connection): void {
		this.#connection = connection;
		this.#send();
	}

	#send(): void {
		const connection = this.#connection;
		if (connection === null) return;
		connection.stream.cork();
		for (const { text, values } of this.#questions.slice(this.#sent)) {
			const isNew = text !== this.#parsed;
			if (isNew) connection.parse({ name: '', text, types: [] }, true);
			connection.bind({ values: values.map(toWire) }, true);
			if (isNew) connection.describe({ type: 'P', name: '' }, true);
			connection.execute(null, true);
			this.#parsed = text;
		}
		this.#sent = this.#questions.length;
		if (this.#isEnded) connection.sync();
		connection.stream.uncork();
	}

	handleRowDescription({ fields }: { fields: readonly FieldDef[] }): void {
		this.#columns = fields.map(({ name, dataTypeID }) => ({ name, parse: parserOf(dataTypeID) }));
	}

	handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
		this.#rows.push(fields.map((text, at) => (text === null ? null : this.#columns[at]?.parse(text))));
	}

	handleCommandComplete({ text }: { text: string }): void {
		this.#end(text);
	}

	handleEmptyQuery(): void {
		this.#end('');
	}

	handleReadyForQuery(): void {
		this.#onEnd();
		for (const [at, answer] of this.#answers.entries()) {
			const question = this.#questions[at];
			if (question?.text === 'COMMIT' && answer.tag === 'ROLLBACK') question.fail(new Aborted());
			else question?.answer(answer);
		}
	}

	handleError(error: unknown): void {
		this.handleReadyForQuery();
		for (const question of this.#questions.slice(this.#answers.length)) question.fail(error);
	}

	#end(tag: string): void {
		const at = this.#answers.length;
		const changes = Number(tag.slice(tag.lastIndexOf(' ') + 1)) || 0;
		this.#answers.push({ names: this.#columns.map(({ name }) => name), rows: this.#rows, changes, tag });
		this.#rows = [];
		if (this.#questions[at + 1]?.text !== this.#questions[at]?.text) this.#columns = [];
	}
}

const types = { bool: 16, bytea: 17, int8: 20, int2: 21, int4: 23, float4: 700, float8: 701, numeric: 1700 };
const numeric: ReadonlySet<number> = new Set([
	types.int2,
	types.int4,
	types.int8,
	types.float4,
	types.float8,
	types.numeric,
]);

function parserOf(oid: number): (text: string) => unknown {
	if (numeric.has(oid)) return Number;
	if (oid === types.bool) return (text) => (text === 't' ? 1 : 0);
	if (oid === types.bytea) return (text) => Buffer.from(text.slice(2), 'hex');
	return (text) => text;
}

function toWire(value: SqlValue): string | Buffer | null {
	if (value === null || typeof value === 'string') return value;
	return value instanceof Uint8Array
		? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
		: String(value);
}
