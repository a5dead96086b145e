import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { widthOf } from '../../../src/cli/render/width.js';
import { fitSentences } from '../../../src/cli/render/wrapping.js';
import { makeProject, type Project } from '../../support/project.js';
import { startSmtpSink } from '../../support/smtp-sink.js';

const terminal = { isTTY: true, columns: 40 };

describe('sentences of the output', () => {
	it('wrap between words on a terminal, but not elsewhere', async () => {
		const text = 'read 59 = created 19 + updated 0 + duplicate 20 + rejected 20';
		expect(await fitSentences(text, terminal)).toBe(
			'read 59 = created 19 + updated 0 +\nduplicate 20 + rejected 20',
		);
		expect(await fitSentences(text, { isTTY: false, columns: 40 })).toBe(text);
	});

	it('never wrap inside an address, a path or a command', async () => {
		const path = `/home/ann/${'x'.repeat(50)}/people.csv.rejects.csv`;
		expect(await fitSentences(`rows are in ${path}; correct them`, terminal)).toBe(
			`rows are in\n${path};\ncorrect them`,
		);
		const command = 'mailctl lists list --all --fields name';
		for (const before of ['hint:', 'hint: no mail server yet:'])
			expect(await fitSentences(`${before} ${command}`, terminal)).toBe(`${before}\n${command}`);
	});

	it('wrap before a command if the command fits on the next line', async () => {
		expect(
			await fitSentences('error: mailctl templates list wants an extension that is not there', terminal),
		).toBe('error: mailctl templates list wants an\nextension that is not there');
	});

	it('may wrap after a command, but not inside it', async () => {
		const resume = 'mailctl campaigns resume spring';
		const cancel = 'mailctl campaigns cancel spring';
		const text = `hint: ${resume} goes on, ${cancel} drops what is not sent`;
		expect(await fitSentences(text, terminal, [resume, cancel])).toBe(
			`hint: ${resume}\ngoes on,\n${cancel} drops\nwhat is not sent`,
		);
		const longer = `${resume} --again`;
		expect(await fitSentences(`hint: ${resume} or ${longer}`, terminal, [resume, longer])).toBe(
			`hint: ${resume}\nor\n${longer}`,
		);
	});

	it('wrap by the width of characters, and keep their indentation', async () => {
		const lines = (await fitSentences(`  ${'山田太郎 '.repeat(9).trim()}`, terminal)).split('\n');
		expect(lines.every((line) => widthOf(line) < 40 && line.startsWith('  山'))).toBe(true);
		expect(lines.join('').match(/山田太郎/g)).toHaveLength(9);
	});
});

describe('output of commands at 80 columns', () => {
	let project: Project;
	beforeEach(async () => {
		project = await makeProject();
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	});

	it('keeps a suggested command on one line', async () => {
		const server = await startSmtpSink();
		onTestFinished(() => server.close());
		await project.run(['engine', 'init', '--smtp', `smtp://127.0.0.1:${server.port}`]);
		const send = [
			'send',
			'--from',
			'news@example.com',
			'--to',
			'a@example.com',
			'--subject',
			'S',
			'--text',
			'T',
		];
		const { stderr } = await project.run([...send, '--no-wait', '--no-color'], { columns: 80 });
		expect(stderr).toContain(`\nmailctl --db ${project.db} worker\nsends it\n`);
	});

	it('breaks no word in totals, hints and errors', async () => {
		const rows = Array.from({ length: 1_200 }, (_, n) => `p${n}@example.com\np${n}@example.com\nbad\n`);
		const path = await project.file('people.csv', `email\n${rows.join('')}`);
		const { stderr } = await project.run(
			['subscribers', 'import', path, '-l', '1', '--max-errors', '9', '--no-color'],
			{ columns: 80 },
		);
		const plain = stderr.replace(/\x1b\[\d*m/g, '');
		const lines = plain.replace(/\r\x1b\[K(?:importing[^\r]*)?/g, '').split('\n');
		expect(lines.filter((line) => line.length >= 80 && line.includes(' '))).toEqual([]);
		expect(lines).toEqual(
			expect.arrayContaining([
				'read 3,600 = created 1,200 + updated 0 + unchanged 0 + duplicate 1,200 +',
				'rejected 1,200',
			]),
		);
	});
});
