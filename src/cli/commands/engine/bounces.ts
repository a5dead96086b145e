/** `mailctl engine bounces`: mails that came back. */
import type { CommandGroup } from '../../command.js';
import { explain } from './bounces/explain.js';
import { ingest } from './bounces/ingest.js';

export const bounces: CommandGroup = {
	name: 'bounces',
	summary: 'mails that came back',
	commands: [ingest, explain],
};
