import { isMissingFile } from '../../../store/url.js';
import { type CommandGroup, command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { SecretCount } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type Columns, column } from '../../render/columns.js';
import { inUse } from './backup.js';

const columns: Columns<SecretCount> = [
	{ key: 'key', header: 'KEY', value: ({ key }) => key ?? 'not encrypted' },
	column('secrets', 'SECRETS'),
];

const status = command({
	name: 'status',
	summary: 'show how many secrets are encrypted, and with which key',
	description: 'Needs no key, and changes nothing.',
	columns,
	output: 'an array of {"key", "secrets"}; "key" is null for unencrypted secrets',
	exits: [78],
	examples: ['mailctl engine secrets status'],
	run: async (cx) => {
		const target = cx.settings.target.target();
		if (target.kind !== 'local') return void (await cx.local());
		if (target.create && isMissingFile(target.url)) await cx.local();
		const { countSecrets } = await import('../../connect/inspect.js');
		await cx.out.rows(await countSecrets(target, cx.clock), columns, { all: true });
	},
});

const wrap = command({
	name: 'wrap',
	summary: 'encrypt all secrets with the first key',
	description:
		'First stop `serve` and `worker`. Afterwards start them with the key, so that they encrypt new secrets. ' +
		'To change the key, put the new key above the old key in the key file, run this command again, and ' +
		'remove the old key. Older backups do not change.',
	writes: true,
	columns,
	output: 'the same as `engine secrets status`',
	exits: [2, 78],
	examples: ['MAILCTL_KEY_FILE=mailctl.key mailctl engine secrets wrap'],
	run: async (cx) => {
		const { secrets } = await cx.local();
		if (!secrets.hasKey)
			throw new UsageError('MAILCTL_KEY_FILE is not set', {
				hint: [
					'(umask 077; openssl rand -hex 32 > mailctl.key); MAILCTL_KEY_FILE=mailctl.key ',
					mailctl('engine', 'secrets', 'wrap'),
				],
			});
		await rewrite(cx, 'wrapped');
	},
});

const unwrap = command({
	name: 'unwrap',
	summary: 'store all secrets without encryption',
	description:
		'First stop `serve` and `worker`. Afterwards start them without the key, so that they do not encrypt ' +
		'new secrets.',
	writes: true,
	severity: 'mild',
	columns,
	output: 'the same as `engine secrets status`',
	exits: [2, 78],
	examples: ['mailctl engine secrets unwrap --yes'],
	run: async (cx) => {
		const { secrets } = await cx.local();
		const what = 'store every secret of the database without encryption';
		if (!cx.dryRun && (await secrets.counts()).length > 0) await cx.confirm({ kind: 'mild', what });
		await rewrite(cx, 'plain');
	},
});

async function rewrite(cx: CommandContext, as: 'wrapped' | 'plain'): Promise<void> {
	const { secrets } = await cx.local();
	const others = await secrets.rewrite({ as, isTrial: cx.dryRun });
	if (others.length > 0) {
		const start = as === 'wrapped' ? 'with the key (MAILCTL_KEY_FILE)' : 'without the key';
		throw inUse(others, `stop these processes, try again, then start them ${start}`);
	}
	const counts = await secrets.counts();
	const how = as === 'wrapped' ? 'encrypted' : 'without encryption';
	const plan = as === 'wrapped' ? { wrap: counts } : { unwrap: counts };
	if (cx.dryRun) return cx.wouldDo(`store every secret ${how}`, plan);
	await cx.out.rows(counts, columns, { all: true });
	if (counts.length === 0) await cx.note('the database has no secrets yet');
}

export const secrets: CommandGroup = {
	name: 'secrets',
	summary: 'encrypt the secrets of the database',
	examples: ['MAILCTL_KEY_FILE=mailctl.key mailctl engine secrets wrap', 'mailctl engine secrets status'],
	commands: [status, wrap, unwrap],
};
