import { randomUUID } from 'node:crypto';
import type { Clock } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { CopyDiffers, type Moved, type MovePlan, move, planMove, undoMove } from '../../store/move/move.js';
import type { Movable } from '../../store/moving.js';
import { databaseFile, isPrivate } from '../../store/open.js';
import { isPostgres } from '../../store/url.js';
import { CliError, UsageError } from '../frame/errors.js';
import { exits } from '../frame/exit.js';
import { readWrappingKeys } from './wrapping-keys.js';

interface MoveRequest {
	from: string;
	to: string;
	clock: Clock;
	env: Readonly<Record<string, string | undefined>>;
	warn: (text: string) => void;
}

interface OpenMove {
	from: string;
	to: string;
	plan(): Promise<MovePlan>;
	carryOut(
		plan: MovePlan,
		options: {
			signal: AbortSignal;
			onShut: () => void;
			onProgress: (what: 'copying' | 'comparing', rows: number) => void;
		},
	): Promise<Moved>;
	undo(): Promise<{ cleared: unknown }>;
	close(): Promise<void>;
}

export async function openMove({ clock, env, warn, ...names }: MoveRequest): Promise<OpenMove> {
	const databases = { from: await movable(names.from), to: await movable(names.to) };
	const { from, to } = databases;
	return {
		from: from.name,
		to: to.name,
		plan: async () => {
			const plan = await planMove(databases, clock);
			assertKeys(from, plan, readWrappingKeys(env, warn));
			return plan;
		},
		carryOut: (plan, options) =>
			move({ ...databases, ...options, plan, clock, newId: randomUUID }).catch((error: unknown) => {
				throw asFound(error);
			}),
		undo: () => undoMove(databases, clock),
		close: async () => {
			await Promise.allSettled([from.close(), to.close()]);
		},
	};
}

async function movable(url: string): Promise<Movable> {
	if (isPostgres(url)) return new (await import('../../store/postgres/moving.js')).MovablePostgres(url);
	if (isPrivate(url)) throw new UsageError(':memory: is gone when the command ends; name a file');
	const { MovableSqlite, realFile } = await import('../../store/sqlite/moving.js');
	return new MovableSqlite(realFile(databaseFile(url)));
}

function assertKeys({ name }: Movable, plan: MovePlan, keys: readonly { id: string }[]): void {
	const missing = plan.keys.find((id) => keys.every((key) => key.id !== id));
	if (missing === undefined) return;
	throw new StoreError('key', `the secrets of ${name} are wrapped with key ${missing}: the copy needs it`);
}

function asFound(error: unknown): unknown {
	if (!(error instanceof CopyDiffers)) return error;
	const { message, differences } = error;
	return new CliError('copy_differs', exits.found, message, { details: differences, cause: error });
}
