import { isMissingFile } from '../../../store/url.js';
import { type CommandGroup, command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { SecretCount } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type Columns, column } from '../../render/columns.js';
import { inUse } from './backup.js';

const columns: Columns<SecretCount> = [
	{ key: 'key', header: 'KEY', value: ({ key }) => key ?? 'not wrapped' },
	column('secrets', 'SECRETS'),
];

const about =
	'Wrapped are the password of the mail server, those of webhooks, DKIM keys and the keys that sign links and ' +
	'notifications: AES-256-GCM, by a key from the file that MAILCTL_KEY_FILE names (or in MAILCTL_KEY). That ' +
	'protects a stolen backup or disk, but not from users who can read the key or the memory of a running process. ';

const status = command({
	name: 'status',
	summary: 'how many secrets are wrapped, and by which key',
	description: `${about}It needs no key, and changes nothing.`,
	columns,
	output: 'an array of {"key", "secrets"}; "key" is null for those that are not wrapped',
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
	summary: 'wrap all of them with the first key given',
	description:
		`${about}Stop \`serve\` and \`worker\`, run this, then start them with the key: beside a process that has the database ` +
		'open it is refused, and changes nothing. Secrets that are stored later are wrapped by themselves. To change the ' +
		'key, put the new one above the old one in its file, and take the same steps; then the old one may go. Older ' +
		'backups keep what they held.',
	writes: true,
	columns,
	output: 'as `engine secrets status`',
	exits: [2, 78],
	examples: ['MAILCTL_KEY_FILE=mailctl.key mailctl engine secrets wrap'],
	run: async (cx) => {
		const { secrets } = await cx.local();
		if (!secrets.hasKey)
			throw new UsageError('a key to wrap them with is missing', {
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
	summary: 'store all of them as they are again',
	description:
		'With a key in the environment, what is stored later is wrapped all the same. Stop `serve` and `worker` before, and start them without the key: beside a process that has the database open it is refused, and changes nothing.',
	writes: true,
	severity: 'mild',
	columns,
	output: 'as `engine secrets status`',
	exits: [2, 78],
	examples: ['mailctl engine secrets unwrap --yes'],
	run: async (cx) => {
		const { secrets } = await cx.local();
		const isAsked = !cx.dryRun && (await secrets.counts()).length > 0;
		if (isAsked) await cx.confirm({ kind: 'mild', what: 'store every secret of the database unwrapped' });
		await rewrite(cx, 'plain');
	},
});

async function rewrite(cx: CommandContext, as: 'wrapped' | 'plain'): Promise<void> {
	const { secrets } = await cx.local();
	const others = await secrets.rewrite({ as, isTrial: cx.dryRun });
	if (others.length > 0) {
		const start = as === 'wrapped' ? 'with the key (MAILCTL_KEY_FILE)' : 'without the key';
		throw inUse(others, `stop what runs, run this again, then start it ${start}`);
	}
	const counts = await secrets.counts();
	if (cx.dryRun)
		return cx.wouldDo(`store every secret ${as}`, as === 'wrapped' ? { wrap: counts } : { unwrap: counts });
	await cx.out.rows(counts, columns, { all: true });
	if (counts.length === 0) await cx.note('the database holds no secret yet');
}

export const secrets: CommandGroup = {
	name: 'secrets',
	summary: 'wrap the secrets of the database by a key that is not in it',
	examples: ['MAILCTL_KEY_FILE=mailctl.key mailctl engine secrets wrap', 'mailctl engine secrets status'],
	commands: [status, wrap, unwrap],
};
