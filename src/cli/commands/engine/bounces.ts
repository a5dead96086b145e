/** `mailctl engine bounces`: returned mails. */
import type { CommandGroup } from '../../frame/command.js';
import { explain } from './bounces/explain.js';
import { ingest } from './bounces/ingest.js';

export const bounces: CommandGroup = {
	name: 'bounces',
	summary: 'mails that came back',
	examples: ['mailctl engine bounces ingest bounce.eml', 'mailctl engine bounces explain bounce.eml'],
	commands: [ingest, explain],
};
