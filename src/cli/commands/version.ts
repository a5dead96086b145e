import { command as describe } from '../frame/command.js';
import { isMachine } from '../frame/globals.js';

declare const __VERSION__: string;

export const command = describe({
	name: 'version',
	summary: 'show the version',
	output: '{"version", "node", "platform"}',
	examples: ['mailctl version', 'mailctl version -o json'],
	needsNoTarget: true,
	run: async (cx) => {
		const { format } = cx.out;
		if (!isMachine(format) && cx.globals.fields === undefined) return cx.out.raw(`${__VERSION__}\n`);
		await cx.out.document({
			version: __VERSION__,
			node: process.versions.node,
			platform: `${process.platform}-${process.arch}`,
		});
	},
});
