/**
 * Types of the synchronous core for SQLite. The build removes `async` and `await` from `src/store/core`
 * (`scripts/sync-twin.mjs`). So a transaction begins and ends in one turn of the event loop.
 */
import * as core from '../core/core.js';
import { assertKeys as assertKeysAsync, countSecrets as countSecretsAsync } from '../core/keys.js';
import { closeHolds as closeHoldsAsync } from '../core/limits.js';
import { storedErasures as storedErasuresAsync } from '../core/maintenance.js';
import * as processes from '../core/processes.js';
import * as expired from '../core/retention.js';
import type { Sql as AsyncSql } from '../core/sql.js';
import { openLanes as openLanesAsync } from '../core/submissions.js';
import { dropDeliveries as dropDeliveriesAsync } from '../core/webhooks.js';
import type { Sql } from './sql.js';

type Twin<F> = F extends (...given: infer Given) => infer Answer
	? (...given: { [At in keyof Given]: Given[At] extends AsyncSql ? Sql : Given[At] }) => Awaited<Answer>
	: F;

type Drop = (typeof expired.expiries)[number]['drop'];

function twin<F>(operation: F): Twin<F> {
	return operation as unknown as Twin<F>;
}

export type Core = { [Name in keyof core.Core]: Twin<core.Core[Name]> };

export const createCore = core.createCore as unknown as (
	sql: Sql,
	options?: Parameters<typeof core.createCore>[1],
) => Core;

export const assertKeys = twin(assertKeysAsync);
export const countSecrets = twin(countSecretsAsync);
export const closeHolds = twin(closeHoldsAsync);
export const openLanes = twin(openLanesAsync);
export const storedErasures = twin(storedErasuresAsync);
export const dropDeliveries = twin(dropDeliveriesAsync);
export const expiries = expired.expiries as unknown as readonly { drop: Twin<Drop>; slice: number }[];
export const beat = twin(processes.beat);
export const endBeat = twin(processes.endBeat);
export const findOthers = twin(processes.findOthers);
export const proveTime = twin(processes.proveTime);
export const provenTime = twin(processes.provenTime);
export const reclaimLeases = twin(processes.reclaimLeases);
