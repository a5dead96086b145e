/** Uploads of files that messages will name. */
import { createHash } from 'node:crypto';
import { type Attachments, isSha256, otherBytes, sizeFault } from '../api/attachments.js';
import { ApiError, invalid, notFound } from '../api/errors.js';
import { type EngineContext, found, seenBy } from './context.js';

/** Files of the database. */
export function createAttachments({ store, clock }: EngineContext): Attachments {
	return {
		find: async (sha256, call) => {
			if (!isSha256(sha256)) throw notFound();
			return found(await store.reads.findAttachment({ sha256, now: clock.now(), ...seenBy(call) }));
		},
		put: async (sha256, bytes, call) => {
			const fault = sizeFault([bytes.length]);
			if (fault !== null) throw invalid(fault);
			if (createHash('sha256').update(bytes).digest('hex') !== sha256) throw otherBytes();
			const owner = call?.client === undefined ? {} : { owner: call.client };
			const stored = await store.writes.putAttachment({ sha256, bytes, now: clock.now(), ...owner });
			if (stored === null)
				throw new ApiError(
					'conflict',
					'No message names your last uploads: send some, or wait for 24 hours.',
				);
			return stored;
		},
	};
}
