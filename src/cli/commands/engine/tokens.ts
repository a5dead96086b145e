import { type CommandGroup, command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import { type ApiToken, type NewApiToken, tokenScopes } from '../../frame/connection.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { isForPeople } from '../../frame/globals.js';
import { didYouMean } from '../../frame/words.js';
import { answers, type Columns, column } from '../../render/columns.js';
import { missing } from '../../verbs/resolve.js';

const listColumns: Columns<ApiToken> = [
	column('name', 'NAME', { isName: true }),
	column('scopes', 'SCOPES'),
	column('date_created', 'CREATED', { time: 'text' }),
	column('date_revoked', 'REVOKED', { time: 'text' }),
];

const list = command({
	name: 'list',
	summary: 'list the tokens without their secrets',
	columns: listColumns,
	output: 'an array of {"name", "scopes", "date_created", "date_revoked"}',
	examples: ['mailctl engine tokens list'],
	run: async (cx) => {
		const { tokens } = await cx.local();
		await cx.out.rows(await tokens.list(), listColumns, { all: true });
	},
});

const createColumns: Columns<NewApiToken> = [
	column('name', 'NAME'),
	column('scopes', 'SCOPES'),
	column('date_created', 'CREATED', { time: 'text' }),
	column('token', 'TOKEN', { isWhole: true, isName: true }),
];

const nameOption = { kind: 'text', required: true, ask: 'Name of the token:' } as const;

const create = command({
	name: 'create',
	summary: 'create a token, which is shown only once',
	description:
		'Scopes: read (reads everything but webhooks), send (sends messages and campaigns; with read, also to lists), ' +
		'admin (allows everything). Only a hash is stored, so a lost token must be replaced.',
	options: {
		name: { ...nameOption, summary: 'name the token after its user or program' },
		scope: { kind: 'choices', choices: tokenScopes, summary: 'allow these scopes (default: admin)' },
	},
	writes: true,
	columns: createColumns,
	output: '{"name", "scopes", "date_created", "token"}; on a terminal, and with --quiet, the token alone',
	exits: [5],
	examples: [
		'mailctl engine tokens create --name laptop',
		'mailctl engine tokens create --name shop --scope send --scope read -q > shop.token',
	],
	run: async (cx, { options: { name, scope } }) => {
		// Logs and commands in hints contain the name, so it must be one plain word.
		if (!/^[A-Za-z0-9][\w.@+-]*$/.test(name) || name.length > maxNameLength)
			throw new UsageError(`--name: "${name}" is not a name for a token`, {
				hint: `letters, digits and . _ - @ +, at most ${maxNameLength}: --name shop`,
			});
		const scopes = scope.length === 0 ? ['admin' as const] : tokenScopes.filter((one) => scope.includes(one));
		const made = await (await cx.local()).tokens.create({ name, scopes });
		if (made === null) throw new CliError('conflict', exits.refused, `a token "${name}" already exists`);
		const what = `create the token ${name} (${scopes.join(', ')})`;
		if (cx.dryRun) return cx.wouldDo(what, { create: { name, scopes } });
		// Print the bare token, for a person to copy or for a shell's `$(…)`.
		if (cx.out.isBare || isForPeople(cx)) await cx.out.raw(`${made.token}\n`);
		else await cx.out.record(made, createColumns);
		await cx.note('store it now: it is not shown again');
	},
});

const maxNameLength = 64;

const revoke = command({
	name: 'revoke',
	aliases: ['rm', 'delete'],
	summary: 'revoke a token at once',
	args: [{ name: 'name', summary: 'the name of the token', of: 'token', ask: 'Which token:' }],
	writes: true,
	severity: 'mild',
	...answers({ revoked: '[names]' }),
	exits: [3],
	examples: ['mailctl engine tokens revoke shop --yes'],
	run: async (cx, { args: { name } }) => {
		const { tokens } = await cx.local();
		const living = (await tokens.list()).filter((one) => one.date_revoked === null).map((one) => one.name);
		if (!living.includes(name))
			throw missing('token', name, didYouMean(name, living) ?? mailctl('engine', 'tokens', 'list'));
		if (cx.dryRun) return cx.wouldDo(`revoke the token ${name}`, { revoke: [name] });
		await cx.confirm({ kind: 'mild', what: `revoke the token ${name}: the server refuses its requests` });
		// Ignore the result: another process may have revoked the token while the question was open.
		await tokens.revoke(name);
		await cx.out.document({ revoked: [name] }, `revoked the token ${name}`);
	},
});

export const tokens: CommandGroup = {
	name: 'tokens',
	summary: 'manage the API tokens of `serve`',
	examples: ['mailctl engine tokens create --name laptop', 'mailctl engine tokens list'],
	commands: [list, create, revoke],
};
