import { resolve } from 'node:path';
import { isPostgres, shownDatabase } from '../../../store/url.js';
import { assertDatabaseName } from '../../config/target.js';
import { refusalOf } from '../../frame/asking.js';
import { command } from '../../frame/command.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { onlyLocal } from '../../frame/errors.js';
import { hinted } from '../../frame/exit.js';
import { answer } from '../../render/columns.js';
import { counted } from '../../render/units.js';

const options = {
	from: { kind: 'path', placeholder: 'DB', summary: 'the database that is moved; that of --db by default' },
	to: {
		kind: 'path',
		placeholder: 'DB',
		summary: 'where to: a new file, or postgres://USER@HOST/DATABASE, empty',
		required: true,
		ask: 'To, a new file or postgres://USER@HOST/DATABASE:',
		whyNot: async (cx: CommandContext, typed: string, { from }: Readonly<Record<string, unknown>>) =>
			refusalOf(() => assertDatabaseName(typed.trim(), '--to')) ??
			whyNotAnother(typed.trim(), from === undefined ? ownDatabase(cx) : String(from)),
	},
	undo: { kind: 'flag', summary: 'give up a move that has not ended: the first database is in use again' },
} as const;

export const migrate = command({
	name: 'migrate',
	summary: 'move the database to PostgreSQL, or back to a file',
	description:
		'Stop `serve`, `worker` and all else first. While it runs nothing can work on either database: the first is shut, ' +
		'the second unfinished until all of it is copied and compared, row by row. At its end the first one says where it ' +
		'was moved to, and refuses everything; delete it when you like. Queue, leases, imports, tokens, keys and reports go ' +
		'along, with their ids; wrapped secrets stay wrapped, and want their key (MAILCTL_KEY_FILE). After a kill, a full ' +
		'disk or a lost connection the same command goes on. The other way round it moves back, to another name. Exit 11: ' +
		'the copy is not the same, and is not used.',
	options,
	writes: true,
	severity: 'mild',
	createsDatabase: false,
	columns: answer('from', 'to', 'rows', 'kept', 'replaced', 'tables', 'duration_ms'),
	output:
		'{"from", "to", "rows", "kept", "replaced", "tables": [{"table", "rows", "sha256"}], "duration_ms"}; "kept" rows were there from an earlier call, in "replaced" texts U+FFFD stands for U+0000; with --undo {"from", "to", "undone"}',
	exits: [4, 6, 11, 74, 78],
	examples: [
		'mailctl engine migrate --from news.db --to postgres://mailctl@db.example.com/mail --yes',
		'mailctl engine migrate --from postgres://mailctl@db.example.com/mail --to back.db --dry-run',
	],
	run: async (cx, { options: { from, to, undo } }) => {
		const { openMove } = await import('../../connect/migrate.js');
		const source = from ?? ownDatabase(cx);
		assertDatabaseName(source, '--from');
		assertDatabaseName(to, '--to');
		const moving = await openMove({
			...{ from: source, to, clock: cx.clock, env: cx.io.env },
			warn: (text) => void cx.warn(text),
		});
		cx.atEnd(() => moving.close());
		return undo ? await giveUp(cx, moving) : await moveOver(cx, moving, { source, to });
	},
});

type Moving = Awaited<ReturnType<typeof import('../../connect/migrate.js')['openMove']>>;

function whyNotAnother(to: string, source: string): string | null {
	const isSame = isPostgres(to) ? to === source : resolve(to) === resolve(source);
	return isSame ? 'that is the database itself: name another one' : null;
}

function ownDatabase(cx: CommandContext): string {
	const target = cx.settings.target.target();
	if (target.kind !== 'local') throw onlyLocal('engine migrate');
	return target.url;
}

async function moveOver(
	cx: CommandContext,
	moving: Moving,
	named: { source: string; to: string },
): Promise<void> {
	const { from, to } = moving;
	const plan = await moving.plan();
	const what = `move ${from} to ${to} (${counted(plan.rows, 'row')})`;
	if (cx.dryRun) {
		const filled = plan.tables.filter(({ rows }) => rows > 0);
		const tables = filled.map(({ table, rows }) => ({ table: table.name, rows }));
		return cx.wouldDo(what, { migrate: from, with: { to, goes_on: plan.begun !== null }, tables });
	}
	await cx.confirm({ kind: 'mild', what: `${what}, and shut the first one` });
	const began = performance.now();
	const shown = ['--from', shownDatabase(named.source), '--to', shownDatabase(named.to)];
	let isShut = false;
	let progress: ReturnType<CommandContext['progress']> | null = null;
	let doing = '';
	const moved = await moving
		.carryOut(plan, {
			signal: cx.signal,
			onShut: () => {
				isShut = true;
			},
			onProgress: (what, rows) => {
				if (doing !== what) progress?.stop();
				if (doing !== what) progress = cx.progress(`${what}, rows`, plan.rows, rows);
				doing = what;
				progress?.update(rows);
			},
		})
		.catch((error: unknown) => {
			if (!isShut) throw error;
			// If the move was stopped, report the reason of the signal.
			throw hinted(cx.signal.aborted ? cx.signal.reason : error, wayOn(shown));
		})
		.finally(() => progress?.stop());
	const duration_ms = Math.round(performance.now() - began);
	await cx.out.document(
		{ from, to, rows: plan.rows, ...moved, duration_ms },
		`moved ${from} to ${to}: ${counted(plan.rows, 'row')} of ${counted(moved.tables.length, 'table')}, copied and compared`,
	);
	if (moved.replaced > 0)
		await cx.warn(
			`U+FFFD stands for U+0000 in ${counted(moved.replaced, 'text')}: PostgreSQL keeps no such character`,
		);
	if (plan.keys.length > 0)
		await cx.note('the secrets stay wrapped: what works there needs the same MAILCTL_KEY_FILE');
	await cx.hint([`${from} is not used any more; `, mailctl('--db', shownDatabase(named.to), 'doctor')]);
}

async function giveUp(cx: CommandContext, moving: Moving): Promise<void> {
	const { from, to } = moving;
	const what = `give up the move of ${from} to ${to}`;
	if (cx.dryRun) return cx.wouldDo(what, { migrate: from, with: { to, undo: true } });
	await cx.confirm({ kind: 'mild', what });
	const { cleared } = await moving.undo();
	await cx.out.document({ from, to, undone: true }, `${from} is in use again, as it was`);
	if (cleared === null) return;
	const why = cleared instanceof Error ? cleared.message : String(cleared);
	await cx.warn(`what was copied is still there, and nothing works on it: delete ${to} yourself (${why})`);
}

function wayOn(shown: readonly string[]): Hint[] {
	return [
		['nothing works on either database now; this goes on: ', mailctl('engine', 'migrate', ...shown)],
		['this gives it up: ', mailctl('engine', 'migrate', ...shown, '--undo')],
	];
}
