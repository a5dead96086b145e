// A dry run and a preview fail with the exit code and the error of the send itself.
import { beforeAll, describe, expect, it } from 'vitest';
import { makeProject, type Project } from '../../../support/project.js';

const from = ['--from', 'news@example.com'];
const subject = ['--subject', 'S'];
const agreed = ['--yes', '--expect-count', '1'];

let project: Project;
beforeAll(async () => {
	project = await makeProject();
	await project.run(['engine', 'settings', 'set', 'smtp_url', 'smtp://mail.example.com']);
	await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
	await project.json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com']);
	await project.file('deep.html', `${'<div>'.repeat(401)}x`);
	await project.file('many.txt', '#k# '.repeat(4_000));
	await project.file('long.json', JSON.stringify({ k: 'x'.repeat(10_000) }));
	await project.file('people.csv', 'email\nann@example.com\n');
});

const inFolder = (words: readonly string[]) =>
	words.map((word) => (/\.(html|txt|json|csv|ndjson)$/.test(word) ? `${project.folder}/${word}` : word));

const audiences = {
	'one address': ['--to', 'ann@example.com'],
	'a list': ['--list', '1', ...agreed],
	'a table': ['--csv', 'people.csv', ...agreed],
};

const refused: readonly [what: string, words: readonly string[], says: string][] = [
	[
		'bulk mail without a public URL',
		[...subject, '--text', 'T', '--bulk'],
		'type: BULK needs the setting public_url',
	],
	[
		'HTML nested too deeply',
		[...subject, '--html-file', 'deep.html', '--transactional'],
		'html_body: Ensure',
	],
	[
		'a message too large with its values',
		[...subject, '--text-file', 'many.txt', '--context-file', 'long.json', '--transactional'],
		'context: With this context the message would have 40,004,000 bytes',
	],
	[
		'a subject too long with its values',
		['--subject', '#k#', '--text', 'T', '--context-file', 'long.json', '--transactional'],
		'context: With this context the subject would have 10,000 characters',
	],
	[
		'a header that may not be set',
		[...subject, '--text', 'T', '--header', 'Errors-To: a@example.com', '--transactional'],
		'headers.Errors-To: This header may not be set.',
	],
	[
		'an unknown sender',
		['--from', 'x@example.com', ...subject, '--text', 'T', '--transactional'],
		'from: Sender',
	],
];

describe.each(Object.entries(audiences))('send to %s', (_, audience) => {
	it.each(refused)('fails in a dry run and in a preview as in a real run: %s', async (_what, words, says) => {
		const all = inFolder(['send', ...from.filter(() => !words.includes('--from')), ...words, ...audience]);
		const real = await project.run([...all, '--no-wait']);
		expect(real).toMatchObject({ code: 5, stderr: expect.stringContaining(`error: ${says}`) });
		const errorOf = (stderr: string) => stderr.split('\n').find((line) => line.startsWith('error: '));
		for (const more of [['--dry-run'], ['--preview', 'text']]) {
			const foreseen = await project.run([...all, ...more]);
			expect({ ...foreseen, stderr: errorOf(foreseen.stderr) }).toEqual({
				code: 5,
				stdout: '',
				stderr: errorOf(real.stderr),
			});
		}
	});
});

it('a dry run to one address prints the same error as the real run if a variable has no value', async () => {
	const words = ['send', ...from, '--subject', 'In #city#', '--text', 'T', '--strict-vars'];
	const all = [...words, '--to', 'ann@example.com'];
	const real = await project.run([...all, '--no-wait']);
	expect(real).toMatchObject({ code: 2, stderr: expect.stringContaining('no value for #city#') });
	expect(await project.run([...all, '-n'])).toEqual(real);
});

const unbegun: readonly [what: string, more: readonly string[], code: number, says: string][] = [
	['a file of results that is there', ['--results', 'people.csv'], 2, '--results: '],
	['a folder that is not there', ['--results', 'none/results.csv'], 2, '--results: '],
	['results on standard output', ['--results', '-'], 2, '--results needs a file'],
];

describe.each(Object.entries(audiences))('send to %s', (_, audience) => {
	it.each(unbegun)('fails in a dry run as in a real run: %s', async (_what, more, code, says) => {
		const all = inFolder([
			'send',
			...from,
			...subject,
			'--text',
			'T',
			'--transactional',
			...audience,
			...more,
		]);
		const real = await project.run(all);
		expect(real).toMatchObject({ code, stderr: expect.stringContaining(`error: ${says}`) });
		expect(await project.run([...all, '-n'])).toEqual(real);
	});

	it('prints the same error in a dry run and a real run if no mail server is configured', async () => {
		const bare = await makeProject();
		await bare.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		await bare.json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com']);
		const all = inFolder(['send', ...from, ...subject, '--text', 'T', '--transactional', ...audience]);
		const real = await bare.run(all);
		expect(real).toMatchObject({ code: 2, stderr: expect.stringContaining('no mail server is configured') });
		expect(await bare.run([...all, '-n'])).toEqual(real);
		expect(await bare.run([...all, '-n', '--no-wait'])).toMatchObject({ code: 0 });
	});
});

it('a dry run prints the same error as the real run for a repeated campaign or a used campaign name', async () => {
	const message = { from: 'news@example.com', to: ['ann@example.com'], subject: 'S', text_body: 'T' };
	await project.file('once.ndjson', JSON.stringify(message));
	const content = [...from, ...subject, '--text', 'unfinished', '--transactional'];
	const { 'one address': __, ...jobs } = audiences;
	const sends = [
		...Object.values(jobs).map((one) => [...content, ...one]),
		['--batch', 'once.ndjson', ...agreed],
	];
	for (const [index, words] of sends.entries()) {
		const all = ['send', ...inFolder(words), '--no-wait'];
		const job = `job ${index}`;
		await project.json([...all, '--campaign', job]);
		const twin = await project.run(all);
		expect(twin).toMatchObject({
			code: 2,
			stderr: expect.stringContaining(`"${job}" was sent to`),
		});
		expect(await project.run([...all, '-n'])).toEqual(twin);
		const taken = await project.run([...all, '--campaign', job, '--no-strict-vars']);
		expect(taken).toMatchObject({ code: 5, stderr: expect.stringContaining('belongs to another campaign') });
		expect(await project.run([...all, '--campaign', job, '--no-strict-vars', '-n'])).toEqual(taken);
	}
	const before = await project.json(['campaigns', 'list']);
	await project.json([
		'send',
		...inFolder(sends[0] ?? []),
		...'--no-wait --again --campaign new -n'.split(' '),
	]);
	expect(await project.json(['campaigns', 'list'])).toEqual(before);
	const resumed = inFolder(['campaigns', 'resume', 'job 0', '--results', 'people.csv']);
	const refusedResults = await project.run(resumed);
	expect(refusedResults).toMatchObject({ code: 2, stderr: expect.stringContaining('exists already') });
	expect(await project.run([...resumed, '-n'])).toEqual(refusedResults);
});

it('a dry run of a batch prints the same error as the real run for each bad request', async () => {
	const message = { from: 'news@example.com', to: ['ann@example.com'], subject: 'S', text_body: 'T' };
	const requests = [
		{ ...message, type: 'BULK' },
		{ ...message, html_body: `${'<b>'.repeat(401)}x` },
		{ ...message, subject: '#k#', context: { k: 'x'.repeat(1_000) } },
		{ ...message, from: 'x@example.com' },
		{ ...message, list_id: 9 },
		{ ...message, campaign_unique_id: '6ba7b810-9dad-11d1-80b4-00c04fd430c8' },
	];
	const lines = requests.map((request) => JSON.stringify(request)).join('\n');
	const words = ['send', '--batch', await project.file('b.ndjson', lines), ...agreed];
	const real = await project.run([...words, '--no-wait']);
	const dry = await project.run([...words, '--dry-run']);
	const errors = ({ stderr }: { stderr: string }) =>
		stderr.split('\n').filter((line) => line.startsWith('error: line'));
	expect(errors(real)).toHaveLength(requests.length);
	expect({ code: dry.code, errors: errors(dry) }).toEqual({ code: real.code, errors: errors(real) });
});

describe('a dry run of a send to one address', () => {
	const send = (...words: readonly string[]) => ['send', ...from, ...subject, ...words, '--no-wait'];

	it('exits with 5 if the idempotency key belongs to another request', async () => {
		const keyed = ['--to', 'ann@example.com', '--idempotency-key', 'foreseen'];
		const messages = async () => ((await project.json(['messages', 'list'])) as unknown[]).length;
		const before = await messages();
		expect(await project.run(send(...keyed, '--text', 'T', '-n'))).toMatchObject({ code: 0 });
		expect(await project.run(send(...keyed, '--text', 'T'))).toMatchObject({ code: 0 });
		const other = await project.run(send(...keyed, '--text', 'another', '-n'));
		expect(other).toMatchObject({ code: 5, stderr: expect.stringContaining('Idempotency-Key') });
		expect(await messages()).toBe(before + 1);
	});

	it('exits with 9 if the address is suppressed', async () => {
		await project.run(['suppressions', 'add', 'left@example.com', '--reason', 'COMPLAINED']);
		const words = send('--to', 'left@example.com', '--text', 'T');
		const real = await project.run(words);
		const foreseen = await project.run([...words, '-n']);
		expect(real.code).toBe(9);
		expect(foreseen.code).toBe(9);
		expect(foreseen.stderr).toContain('left@example.com');
	});
});
