// An import never ignores columns that say who may get mail. Otherwise people who unsubscribed would become active.
import { readFile } from 'node:fs/promises';
import { beforeEach, expect, it } from 'vitest';
import { type CliResult, cli } from '../../../../support/cli.js';
import { djangoMissing, startDjango } from '../../../../support/drf.js';
import { errorOf, makeProject, type Project } from '../../../../support/project.js';
import { startServer } from '../../../../support/running-server.js';

let project: Project;

beforeEach(async () => {
	project = await makeProject();
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
});

const words = (path: string, ...more: string[]) => ['subscribers', 'import', path, '-l', '1', ...more];
const listing = ['subscribers', 'list', '-l', '1', '--all', '--sort', 'email'];
const statesIn = (people: unknown) =>
	(people as { email: string; is_active: boolean; disable_reason: string | null }[]).map((one) =>
		[one.email.split('@')[0], one.is_active ? 'active' : one.disable_reason].join(' '),
	);
const people = async () => statesIn(await project.json(listing));

const tool =
	'email,Status,UNSUB_TIME\na@e.org,unsubscribed,\nb@e.org,active,\nc@e.org,blocklisted,2024-05-01\n';
const map = ['--map', 'Status=state', '--map', 'UNSUB_TIME=-'];

it('an import exits with 2 and writes nothing if --map omits a column that says who may get mail', async () => {
	const path = await project.file('tool.csv', tool);
	for (const more of [[], ['--ignore-unknown'], ['--create-fields'], ['--create-fields', '-n']]) {
		const { code, stderr } = await project.run(words(path, ...more));
		expect([code, stderr]).toEqual([
			2,
			'error: the columns cannot be used as they are\n' +
				'error: the column "Status" says who may get mail ("unsubscribed", "active", "blocklisted")\n' +
				'error: the column "UNSUB_TIME" says who may get mail ("2024-05-01")\n' +
				'hint: --map Status=state reads the column as states; COLUMN=- leaves the column out, COLUMN=meta.FIELD with --create-fields makes it a field\n',
		]);
	}
	const piped = words('-', '--ignore-unknown', '--rejects', `${project.folder}/r.csv`);
	expect((await project.run(piped, { stdin: tool })).code).toBe(2);
	const ndjson = await project.file('tool.ndjson', '{"email":"a@e.org","opted_out":true}\n');
	expect((await project.run(words(ndjson, '--ignore-unknown'))).stderr).toContain('"opted_out"');
	expect([await project.json(['fields', 'list']), await people()]).toEqual([[], []]);
});

it('an import accepts an unknown word for a state if --state-words gives its meaning', async () => {
	const path = await project.file('tool.csv', tool);
	expect(errorOf(await project.run([...words(path, ...map), '-o', 'json']))).toMatchObject({
		exit_code: 2,
		message: 'Status: some values are not subscriber states',
		details: ['"blocklisted": 1 row'],
		hint: expect.stringContaining('--state-words blocklisted=STATE, where STATE is active, unsubscribed,'),
	});
	const named = [...map, '--state-words', 'x=active,Block-Listed=bounced'];
	expect(await project.json(words(path, ...named, '-n'))).toMatchObject({
		columns: { email: 'email', Status: 'state' },
		first_row: { email: 'a@e.org', Status: 'unsubscribed' },
	});
	expect(await project.json(words(path, ...named))).toMatchObject({ created: 3, rejected: 0 });
	expect(await project.json(['suppressions', 'list'])).toMatchObject([
		{ email: 'a@e.org', reason: 'UNSUBSCRIBED', source: 'IMPORT' },
		{ email: 'c@e.org', reason: 'HARDBOUNCED', source: 'IMPORT' },
	]);
	const later = await project.file('later.csv', 'email,Status\na@e.org,active\nd@e.org,unconfirmed\n');
	await project.json(words(later, '--map', 'Status=state'));
	expect(await people()).toEqual(['a UNSUBSCRIBED', 'b active', 'c HARDBOUNCED', 'd UNCONFIRMED']);
});

const files: readonly [what: string, file: string, options: string, states: string][] = [
	['the strongest state', 'Off,Bounced\na,,0\nb,,1', 'Off=- Bounced=state', 'a active, b HARDBOUNCED'],
	[
		'yes and no in German',
		'Abgemeldet,Spam\na,ja,\nb,nein,\nc,,x',
		'Abgemeldet=state Spam=state',
		'a UNSUBSCRIBED, b active, c COMPLAINED',
	],
	[
		'an unsubscription in a later row of the same address',
		'Abgemeldet\na,nein\na,ja',
		'Abgemeldet=state',
		'a UNSUBSCRIBED',
	],
	['a later row that is not active', 'is_active\na,true\na,false\nb,false\nb,true', '', 'a , b '],
	['an empty cell', 'Consent\na,yes\nb,', 'Consent=state =unsubscribed', 'a active, b UNSUBSCRIBED'],
	[
		'an unknown disable_reason',
		'status\na,active\nb,Enabled\nc,moved',
		'status=disable_reason',
		'a active, b active, c moved',
	],
	['a state column that is left out', 'Status\na,unsubscribed', 'Status=-', 'a active'],
	['a state column that becomes a field', 'Status\na,unsubscribed', 'Status=city', 'a active'],
	['a mapping to a field named state', 'Land\na,unsubscribed', 'Land=meta.state', 'a active'],
];
it.each(files)('an import accepts %s', async (_, file, options, states) => {
	for (const variable of ['city', 'state'])
		await project.json(['fields', 'create', '--variable', variable, '--name', variable]);
	const path = await project.file('people.csv', `email,${file.replaceAll(/^(\w),/gm, '$1@e.org,')}\n`);
	const more = options
		.split(' ')
		.filter(Boolean)
		.flatMap((pair) => [pair.startsWith('=') ? '--state-words' : '--map', pair]);
	await project.json(words(path, ...more));
	expect(await people()).toEqual(states.split(', '));
	const bad = await project.run(words(path, ...more, '--state-words', 'x=gone'));
	expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining('"x=gone" does not end in a state')]);
});

it('an unknown word for a state makes an import reject a whole file, but only the affected rows of standard input', async () => {
	const rows = Array.from({ length: 40_000 }, (_, at) => `person${at}@example.com,active\n`).join('');
	const text = `email,Status\n${rows}a@e.org,paused\nb@e.org,paused\nc@e.org,unsubscribed\n`;
	const mapped = ['--map', 'Status=state'];
	const refused = await project.run(words(await project.file('late.csv', text), ...mapped));
	expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('error: "paused": 2 rows\n')]);
	const rejects = `${project.folder}/rejects.csv`;
	expect((await project.run(words('-', ...mapped, '--rejects', rejects), { stdin: text })).code).toBe(9);
	expect((await readFile(rejects, 'utf8')).split('\n')[1]).toBe(
		'a@e.org,paused,40002,invalid,"state: ""paused"" is not a known state: explain it with --state-words"',
	);
	expect((await project.run(words(rejects))).stderr).toContain('the column "Status" says who may get mail');
	await project.json(words(rejects, ...mapped, '--state-words', 'paused=unconfirmed'));
	expect((await people()).filter((one) => !one.endsWith(' active'))).toEqual([
		...['a UNCONFIRMED', 'b UNCONFIRMED', 'c UNSUBSCRIBED'],
	]);
});

it('an import of a file that mailctl exported changes no subscriber', async () => {
	const path = await project.file(
		'people.csv',
		'email,disable_reason\na@e.org,UNSUBSCRIBED\nb@e.org,\nc@e.org,moved\n',
	);
	await project.json(words(path));
	await project.json(['fields', 'create', '--variable', 'status', '--name', 'Status']);
	await project.json(['subscribers', 'update', '2', '-l', '1', '--meta', 'status=unsubscribed']);
	const before = await project.json(listing);
	const all =
		'id,list_id,email,name,is_active,disable_reason,is_email_verified,source,opt_in_signed,date_created,status,meta';
	for (const [name, fields] of [
		['usual.csv', []],
		['all.csv', ['--fields', all]],
		['all.ndjson', []],
	] as const) {
		await project.json(['subscribers', 'export', `${project.folder}/${name}`, '-l', '1', ...fields]);
		expect(await project.json(words(`${project.folder}/${name}`))).toMatchObject({
			unchanged: 3,
			rejected: 0,
		});
	}
	const wire = await project.file('wire.ndjson', (await project.run([...listing, '-o', 'ndjson'])).stdout);
	expect(await project.json(words(wire))).toMatchObject({ unchanged: 3, rejected: 0 });
	expect(await project.json(listing)).toEqual(before);
});

const missing = await djangoMissing();

it.each([
	['a mailctl server', ['a UNSUBSCRIBED', 'b active', 'c HARDBOUNCED', 'd UNSUBSCRIBED']],
	['another service, which stores no reason', ['a ', 'b active', 'c ', 'd ']],
])('an import sets the states of subscribers on %s', async (where, expected) => {
	const isOurs = where === 'a mailctl server';
	if (!isOurs && missing !== null) return;
	const server = await (isOurs ? startServer(project.db) : startDjango());
	const env = { MAILCTL_TOKEN: server.token, HOME: project.folder };
	const run = (argv: readonly string[]): Promise<CliResult> =>
		cli(['--base-url', server.baseUrl, ...argv], { env });
	try {
		if (!isOurs) await run(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		const path = await project.file('tool.csv', `${tool}d@e.org,active,\nd@e.org,unsubscribed,\n`);
		const skipped = await project.file('skipped.csv', 'email,disable_reason\nb@e.org,UNSUBSCRIBED\n');
		expect((await run(words(path, '--create-fields'))).code).toBe(2);
		const done = await run(words(path, ...map, '--state-words', 'blocklisted=bounced'));
		expect(statesIn(JSON.parse((await run([...listing, '-o', 'json'])).stdout))).toEqual(expected);
		await run(words(skipped, '--on-conflict', 'skip'));
		const then = statesIn(JSON.parse((await run([...listing, '-o', 'json'])).stdout));
		expect(then[1]).toBe(isOurs ? 'b UNSUBSCRIBED' : 'b ');
		const warning = '3 rows have a disable_reason, which this service cannot store';
		expect([done.code, done.stderr.includes(warning)]).toEqual([0, !isOurs]);
	} finally {
		await server.stop();
	}
});
