/** Uploads of files that messages will name. */
import { createHash } from 'node:crypto';
import { type Attachments, isSha256, otherBytes, sizeFault } from '../api/attachments.js';
import { invalid, notFound } from '../api/errors.js';
import { type EngineContext, found } from './context.js';

/** Files of the database. */
export function createAttachments({ store, clock }: EngineContext): Attachments {
	return {
		find: async (sha256) => {
			if (!isSha256(sha256)) throw notFound();
			return found(await store.reads.findAttachment({ sha256, now: clock.now() }));
		},
		put: async (sha256, bytes) => {
			const fault = sizeFault([bytes.length]);
			if (fault !== null) throw invalid(fault);
			if (createHash('sha256').update(bytes).digest('hex') !== sha256) throw otherBytes();
			return store.writes.putAttachment({ sha256, bytes, now: clock.now() });
		},
	};
}
