/** The records of a run, certain and uncertain: an unanswered POST may have been carried out. */
import { isRecord } from '../../api/json.js';
import type { Answer, Ask } from './caller.js';
import { Denied, type Kind, type Probe } from './model.js';

export interface CreatedRecords {
	/** A POST that creates a record; the run deletes the record at its end. */
	create(probe: Pick<Probe, 'call'>, kind: Kind, ask: Ask): Promise<Answer>;
	/** Ids that were answered. */
	made(kind: Kind): readonly number[];
	/** A record may exist whose id is unknown. */
	isUncertain(kind: Kind): boolean;
	/** No record was made or tried. */
	isEmpty(): boolean;
}

/**
 * Empty, for one run. A kind is uncertain while its POST is out, and for good after one that was answered by neither an
 * id nor a 4xx.
 */
export function trackCreatedRecords(): CreatedRecords {
	const known: Record<Kind, Set<number>> = { list: new Set(), field: new Set(), webhook: new Set() };
	const uncertain = new Set<Kind>();
	return {
		async create(probe, kind, ask) {
			const before = uncertain.has(kind);
			uncertain.add(kind);
			const answer = await probe.call(ask).catch((error: unknown) => {
				// A 403 made nothing.
				if (!before && error instanceof Denied) uncertain.delete(kind);
				throw error;
			});
			const id = isRecord(answer.json) ? answer.json['id'] : undefined;
			const isMade = answer.status < 300 && typeof id === 'number' && Number.isSafeInteger(id);
			if (isMade) known[kind].add(id);
			const isRefused = answer.status >= 400 && answer.status < 500;
			if (!before && (isMade || isRefused)) uncertain.delete(kind);
			return answer;
		},
		made: (kind) => [...known[kind]],
		isUncertain: (kind) => uncertain.has(kind),
		isEmpty: () => uncertain.size === 0 && Object.values(known).every((ids) => ids.size === 0),
	};
}
