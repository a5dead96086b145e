import { randomUUID } from 'node:crypto';
import type { Clock } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { CopyDiffers, type MovePlan, move, planMove, undoMove } from '../../store/move/move.js';
import type { Movable } from '../../store/moving.js';
import { databaseFile } from '../../store/open.js';
import { isPostgres } from '../../store/url.js';
import { CliError } from '../frame/errors.js';
import { exits } from '../frame/exit.js';
import { readWrappingKeys } from './wrapping-keys.js';

interface MoveRequest {
	from: string;
	to: string;
	clock: Clock;
	env: Readonly<Record<string, string | undefined>>;
	warn: (text: string) => void;
}

export async function openMove({ clock, env, warn, ...names }: MoveRequest) {
	const databases = { from: await movable(names.from), to: await movable(names.to) };
	const { from, to } = databases;
	return {
		from: from.name,
		to: to.name,
		plan: async () => {
			const plan = await planMove(databases, clock);
			const keys = readWrappingKeys(env, warn);
			const missing = plan.keys.find((id) => keys.every((key) => key.id !== id));
			if (missing === undefined) return plan;
			const message = `the copy needs key ${missing}, which encrypts the secrets of ${from.name}`;
			throw new StoreError('key', message);
		},
		carryOut: (
			plan: MovePlan,
			options: {
				signal: AbortSignal;
				onShut: () => void;
				onProgress: (what: 'copying' | 'comparing', rows: number) => void;
			},
		) =>
			move({ ...databases, ...options, plan, clock, newId: randomUUID }).catch((error: unknown) => {
				if (!(error instanceof CopyDiffers)) throw error;
				const { message, differences } = error;
				throw new CliError('copy_differs', exits.found, message, { details: differences, cause: error });
			}),
		undo: () => undoMove(databases, clock),
		close: async () => {
			await Promise.allSettled([from.close(), to.close()]);
		},
	};
}

async function movable(url: string): Promise<Movable> {
	if (isPostgres(url)) return new (await import('../../store/postgres/moving.js')).MovablePostgres(url);
	const { MovableSqlite, realFile } = await import('../../store/sqlite/moving.js');
	return new MovableSqlite(realFile(databaseFile(url)));
}
