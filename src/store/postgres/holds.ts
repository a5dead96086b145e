import { createHash } from 'node:crypto';
import type { Hold } from '../operations.js';

/** Taken in this order, so that no two writes wait for each other. */
const levels: readonly Hold['level'][] = ['project', 'people', 'address', 'key', 'deliveries'];

const buckets = 64;

function bucketOf(text: string): number {
	return text === '' ? 0 : createHash('sha256').update(text).digest().readUInt16BE() % buckets;
}

export function takeHolds(schema: string, holds: readonly Hold[]): readonly string[] {
	const each = new Map(
		holds
			.map(({ level, of, isAlone }) => ({ level, bucket: bucketOf(of), isAlone }))
			.sort(
				(one, other) => levels.indexOf(one.level) - levels.indexOf(other.level) || one.bucket - other.bucket,
			)
			.map((hold) => [`${hold.level} ${hold.bucket}`, hold]),
	);
	return [...each].map(([name, { isAlone }]) => {
		const take = isAlone ? 'pg_advisory_xact_lock' : 'pg_advisory_xact_lock_shared';
		return `${take}(hashtextextended('mailctl ${schema} ${name}', 0))`;
	});
}
