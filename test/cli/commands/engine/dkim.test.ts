import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { dkimVerifiers } from '../../../support/dkim-verifiers.js';
import { makeProject, type Project } from '../../../support/project.js';
import { startSmtpSink } from '../../../support/smtp-sink.js';
import { typing } from '../../../support/typing.js';

const named = (domain: string, selector: string) => ['--domain', domain, '--selector', selector];

describe('mailctl engine dkim', () => {
	let project: Project;
	beforeEach(async () => {
		project = await makeProject();
	});
	const dkim = (...words: string[]) => project.run(['engine', 'dkim', ...words]);
	const list = () => project.json(['engine', 'dkim', 'list']);

	it('add creates a key and prints the DNS record, but never the private key', async () => {
		const added = await project.json(['engine', 'dkim', 'add', ...named('Example.COM.', 'S1')]);
		expect(added).toEqual({
			domain: 'example.com',
			selector: 's1',
			type: 'rsa',
			date_created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/),
			dns_name: 's1._domainkey.example.com',
			dns_value: expect.stringMatching(/^v=DKIM1; k=rsa; p=[\w+/]{390,}=*$/),
			dns_record: expect.stringMatching(/^s1\._domainkey\.example\.com\. IN TXT \( "v=DKIM1; k=rsa; p=/),
		});
		expect(await list()).toEqual([added]);
		expect(statSync(project.db).mode & 0o777).toBe(0o600);
	});

	it('add asks again if the user enters an invalid selector', async () => {
		await dkim('add', ...named('example.com', 's1'), '--type', 'ed25519');
		const { code, stderr } = await typing(
			[
				['Domain of the senders:', 'example'],
				['"example" is not a domain', '.com'],
				['Selector:', 'bad sel!'],
				['letters, digits and hyphens', '\x15s2'],
			],
			(options) => project.run(['engine', 'dkim', 'add', '--type', 'ed25519'], options),
		);
		expect([code, stderr]).toEqual([0, expect.stringContaining('is now signed')]);
		expect(await list()).toMatchObject([{ selector: 's1' }, { selector: 's2' }]);
	});

	it('add prints the DNS record’s full name and value on a terminal of 80 columns', async () => {
		const made = await project.run(['engine', 'dkim', 'add', ...named('example.com', 's1'), '--no-color'], {
			columns: 80,
		});
		expect(made).toEqual({
			code: 0,
			stdout: expect.stringMatching(
				/^s1\._domainkey\.example\.com\nv=DKIM1; k=rsa; p=[A-Za-z0-9+/]{390,}=*\n$/,
			),
			stderr: 'mail from example.com is now signed: publish this TXT record\n',
		});
	});

	it('add reads a private key from a file and never prints it', async () => {
		const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
		const file = await project.file('dkim.pem', privateKey.export({ format: 'pem', type: 'pkcs1' }));
		const secret = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
		const outputs = [
			await dkim('add', ...named('example.com', 's1'), '--key-file', file, '--debug', '-o', 'json'),
			await dkim('list', '-o', 'json', '--debug'),
			await dkim('list', '-o', 'wide'),
			await dkim('add', ...named('example.com', 's1'), '--key-file', file),
		];
		expect(outputs.map(({ code }) => code)).toEqual([0, 0, 0, 5]);
		for (const { stdout, stderr } of outputs) expect(stdout + stderr).not.toContain(secret.slice(40, 80));
		const published = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).toString('base64');
		expect(JSON.parse(outputs[0]?.stdout ?? '')).toMatchObject({
			dns_value: `v=DKIM1; k=rsa; p=${published}`,
		});
	});

	it.each([
		[['--type', 'dsa', ...named('example.com', 's1')], /--type: unknown value "dsa"/],
		[named('localhost', 's1'), /"localhost" is not a domain/],
		[named('example.com', 'a_b c'), /is not a selector/],
		[['--domain', 'example.com'], /--selector/],
	])('add rejects %j', async (words, why) => {
		const refused = await dkim('add', ...words);
		expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(why) });
		expect(await list()).toEqual([]);
	});

	it('add rejects a file without a key, and does not print the file’s content', async () => {
		const file = await project.file('notes.txt', 'my secret notes');
		const refused = await dkim('add', ...named('example.com', 's1'), '--key-file', file);
		expect(refused).toMatchObject({ code: 2, stdout: '' });
		expect(refused.stderr).toMatch(/^error: --key-file: not a private key in PEM\n/);
		expect(refused.stderr).not.toContain('secret');
	});

	it('remove overwrites the private key in the database file', async () => {
		const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
		const file = await project.file('dkim.pem', privateKey.export({ format: 'pem', type: 'pkcs8' }));
		await dkim('add', ...named('example.com', 's1'), '--key-file', file);
		const secret = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
		const isInFile = () => readFileSync(project.db).includes(secret.slice(100, 200));
		expect(isInFile()).toBe(true);
		expect(await dkim('remove', ...named('example.com', 's1'))).toMatchObject({ code: 2 });
		expect(await dkim('remove', ...named('example.com', 's1'), '-n')).toMatchObject({ code: 0 });
		expect(await project.json(['engine', 'dkim', 'remove', ...named('example.com', 's1'), '-y'])).toEqual({
			removed: [{ domain: 'example.com', selector: 's1' }],
		});
		expect(isInFile()).toBe(false);
		expect(await list()).toEqual([]);
		expect(await dkim('remove', ...named('example.com', 's1'), '-y')).toMatchObject({
			code: 3,
			stderr: expect.stringMatching(
				/^error: example\.com has no key "s1"\nhint: mailctl .*engine dkim list\n$/,
			),
		});
	});
});

describe('a signed message', () => {
	const records = async (project: Project) => {
		const { stdout } = await project.run(['engine', 'dkim', 'list', '-o', 'json']);
		const keys: { dns_name: string; dns_value: string }[] = JSON.parse(stdout);
		return Object.fromEntries(keys.map(({ dns_name, dns_value }) => [dns_name, dns_value]));
	};
	const bulk = [
		...['send', '--from', 'News <news@example.com>', '--to', 'ann@example.net', '--bulk'],
		...['--subject', 'Grüße', '--text', '.a dot\n\nand  two blanks '],
		...['--html', '<p>.a dot</p>\n<a href="https://example.com/x">x</a>'],
	];

	it.each(dkimVerifiers)('has one signature per key of its domain, and $name accepts the message', async ({
		missing,
		verify,
	}) => {
		const sink = await startSmtpSink();
		const project = await makeProject({ smtp: sink.port });
		await project.json(['engine', 'settings', 'set', 'public_url', 'https://m.example.com']);
		await project.json(['engine', 'dkim', 'add', ...named('example.com', 's1')]);
		await project.json(['engine', 'dkim', 'add', ...named('example.com', 'e1'), '--type', 'ed25519']);
		await project.json(['engine', 'dkim', 'add', ...named('example.org', 's1')]);
		const sent = JSON.parse((await project.run([...bulk, '-o', 'json'])).stdout);
		await sink.close();
		const raw = sink.received[0]?.raw ?? Buffer.alloc(0);
		const text = raw.toString('latin1');
		expect(text.match(/^DKIM-Signature: .* d=example\.com;$/gm)).toHaveLength(2);
		expect(text).toMatch(/^ {2}.*List-Unsubscribe-Post/m);
		const shown = await project.run(['messages', 'raw', sent.messages[0].id]);
		expect(shown.stdout.replaceAll('\r\n', '\n').trimEnd()).toBe(text.replaceAll('\r\n', '\n').trimEnd());
		if (missing !== null) return;
		const stripped = text.replace(/^List-Unsubscribe-Post: .*\r\n/m, '');
		expect(verify(await records(project), [raw, Buffer.from(stripped, 'latin1')])).toEqual([true, false]);
	});

	it('keeps its signature in the file that send --eml writes', async () => {
		const project = await makeProject({ smtp: 2525 });
		await project.json(['engine', 'dkim', 'add', ...named('example.com', 'e1'), '--type', 'ed25519']);
		const file = join(project.folder, 'out.eml');
		expect(await project.run([...bulk, '--eml', file, '-n'])).toMatchObject({ code: 0 });
		const [verifier] = dkimVerifiers.filter(({ missing }) => missing === null);
		if (verifier === undefined) return;
		expect(verifier.verify(await records(project), [readFileSync(file)])).toEqual([true]);
	});
});
