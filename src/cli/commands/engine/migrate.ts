import { resolve } from 'node:path';
import { isPostgres, shownDatabase } from '../../../store/url.js';
import { assertDatabaseName } from '../../config/target.js';
import { refusalOf } from '../../frame/asking.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { onlyLocal } from '../../frame/errors.js';
import { hinted } from '../../frame/exit.js';
import { answer } from '../../render/columns.js';
import { counted } from '../../render/units.js';

const options = {
	from: { kind: 'path', placeholder: 'DB', summary: 'move this database (default: the one of --db)' },
	to: {
		kind: 'path',
		placeholder: 'DB',
		summary: 'move to a new file or an empty postgres://USER@HOST/DATABASE',
		required: true,
		ask: 'Move to (a new file or postgres://USER@HOST/DATABASE):',
		whyNot: async (cx: CommandContext, typed: string, { from }: Readonly<Record<string, unknown>>) =>
			refusalOf(() => assertDatabaseName(typed.trim(), '--to')) ??
			whyNotAnother(typed.trim(), from === undefined ? ownDatabase(cx) : String(from)),
	},
	undo: { kind: 'flag', summary: 'cancel an unfinished move and use the old database again' },
} as const;

export const migrate = command({
	name: 'migrate',
	summary: 'move the database to PostgreSQL, or back to a file',
	description:
		'Stop `serve` and `worker` first: neither database works until all rows are copied and compared. ' +
		'Everything moves with its ids; encrypted secrets keep their key. If the move is interrupted, run ' +
		'the same command again, or cancel the move with --undo. After the move, the old database refuses every command.',
	options,
	writes: true,
	severity: 'mild',
	createsDatabase: false,
	columns: answer('from', 'to', 'rows', 'kept', 'replaced', 'tables', 'duration_ms'),
	output:
		'{"from", "to", "rows", "kept", "replaced", "tables": [{"table", "rows", "sha256"}], "duration_ms"}; "kept" counts rows from an earlier run, "replaced" counts texts with U+FFFD instead of U+0000; with --undo {"from", "to", "undone"}',
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

type Named = { source: string; to: string };

function whyNotAnother(to: string, source: string): string | null {
	const isSame = isPostgres(to) ? to === source : resolve(to) === resolve(source);
	return isSame ? 'that is the old database' : null;
}

function ownDatabase(cx: CommandContext): string {
	const target = cx.settings.target.target();
	if (target.kind !== 'local') throw onlyLocal('engine migrate');
	return target.url;
}

async function moveOver(cx: CommandContext, moving: Moving, named: Named): Promise<void> {
	const { from, to } = moving;
	const plan = await moving.plan();
	const what = `move ${from} to ${to} (${counted(plan.rows, 'row')})`;
	if (cx.dryRun) {
		const filled = plan.tables.filter(({ rows }) => rows > 0);
		const tables = filled.map(({ table, rows }) => ({ table: table.name, rows }));
		return cx.wouldDo(what, { migrate: from, with: { to, goes_on: plan.begun !== null }, tables });
	}
	await cx.confirm({ kind: 'mild', what: `${what}, and close the old database` });
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
			// After Ctrl-C or `--deadline`, report the reason of the signal, because `error` is only its effect.
			throw hinted(cx.signal.aborted ? cx.signal.reason : error, [
				['neither database works now; to continue: ', mailctl('engine', 'migrate', ...shown)],
				['to cancel: ', mailctl('engine', 'migrate', ...shown, '--undo')],
			]);
		})
		.finally(() => progress?.stop());
	const duration_ms = Math.round(performance.now() - began);
	await cx.out.document(
		{ from, to, rows: plan.rows, ...moved, duration_ms },
		`moved ${from} to ${to}: ${counted(plan.rows, 'row')} of ${counted(moved.tables.length, 'table')}, copied and compared`,
	);
	if (moved.replaced > 0)
		await cx.warn(
			`U+FFFD replaces U+0000, which PostgreSQL cannot store, in ${counted(moved.replaced, 'text')}`,
		);
	if (plan.keys.length > 0) await cx.note('secrets stay encrypted: use the same MAILCTL_KEY_FILE');
	await cx.hint([
		`${from} is no longer used; check the new database: `,
		mailctl('--db', shownDatabase(named.to), 'doctor'),
	]);
}

async function giveUp(cx: CommandContext, moving: Moving): Promise<void> {
	const { from, to } = moving;
	const what = `cancel the move of ${from} to ${to}`;
	if (cx.dryRun) return cx.wouldDo(what, { migrate: from, with: { to, undo: true } });
	await cx.confirm({ kind: 'mild', what });
	const { cleared } = await moving.undo();
	await cx.out.document({ from, to, undone: true }, `${from} is in use again`);
	if (cleared === null) return;
	const why = cleared instanceof Error ? cleared.message : String(cleared);
	await cx.warn(`the copy could not be deleted, so delete ${to} yourself (${why})`);
}
