/** Each setting has one stored form, however its value is spelled; commands show and compare that form. */
import { describe, expect, it } from 'vitest';
import { settingNames } from '../../../../src/engine/rules/settings.js';
import { cli, makeHome } from '../../../support/cli.js';
import { makeProject } from '../../../support/project.js';

const spellings: Readonly<Record<string, readonly (readonly [given: string, kept: string])[]>> = {
	public_url: [[' HTTPS://Mail.Example.com:443/x/ ', 'https://mail.example.com/x']],
	time_zone: [[' Europe/Oslo ', 'Europe/Oslo']],
	smtp_url: [[' SMTP://News@Mail.Example.com:2525/ ', 'smtp://News@mail.example.com:2525']],
	allow_private_webhooks: [
		['TRUE', 'true'],
		[' False ', 'false'],
		['1', 'true'],
	],
	smtp_ehlo_name: [[' Mail.Example.com ', 'mail.example.com']],
	bounce_address: [[' Bounces@Example.COM ', 'Bounces@example.com']],
	send_limit: [
		['100/60m', '100/h'],
		[' 3/1s ,100/24h ', '3/s, 100/d'],
	],
	sender_domain_limits: [['Example.com=100/1h *=10/1s', 'example.com=100/h, *=10/s']],
	recipient_domain_limits: [['Bücher.de=5/90s', 'xn--bcher-kva.de=5/90s']],
	unsubscribe_scope: [[' ALL', 'all']],
	page_sender_name: [[' Birds & Co ', 'Birds & Co']],
	page_logo_url: [[' https://Example.com/logo.png ', 'https://example.com/logo.png']],
	page_color: [[' #0B6E4F', '#0b6e4f']],
	keep_messages: [
		['400', '400d'],
		['0400d ', '400d'],
		['2w', '14d'],
	],
	keep_events: [['30', '30d']],
	keep_bodies: [['1w', '7d']],
	requests_per_second: [[' 5 ', '5']],
};

describe('a setting', () => {
	const rows = Object.entries(spellings).flatMap(([name, pairs]) => pairs.map((pair) => [name, ...pair]));

	it.each(
		rows,
	)('%s with the value %j is stored as %j by settings set and by apply', async (name, given, kept) => {
		const project = await makeProject();
		expect(await project.json(['engine', 'settings', 'set', name, given, '--dry-run'])).toMatchObject({
			with: { value: kept },
		});
		expect(await project.json(['engine', 'settings', 'set', name, given])).toEqual({ name, value: kept });
		const declared = await project.file('mail.yaml', `settings: { ${name}: ${JSON.stringify(given)} }\n`);
		expect(await project.run(['diff', '-f', declared])).toMatchObject({ code: 0, stdout: '' });
		await project.json(['engine', 'settings', 'unset', name]);
		expect((await project.run(['apply', '-f', declared, '--yes'])).code).toBe(0);
		expect(await project.run(['diff', '-f', declared])).toMatchObject({ code: 0, stdout: '' });
		expect(await project.run(['engine', 'settings', 'get', name])).toMatchObject({ stdout: `${kept}\n` });
	});

	it('is tested in this file unless it is a secret or a certificate', () => {
		const others = ['smtp_password', 'smtp_ca'];
		expect([...Object.keys(spellings), ...others].sort()).toEqual(Object.keys(settingNames).sort());
	});
});

it.each([
	['timeout', ' 30s ', '30s'],
	['timeZone', 'Europe/Oslo ', 'Europe/Oslo'],
	['protected', 'TRUE', 'true'],
	['output', 'JSON', 'json'],
	['baseUrl', ' http://127.0.0.1:9/api ', 'http://127.0.0.1:9/api'],
	['list', ' News ', 'News'],
])('the setting %s with the value %j is stored in a profile as %j', async (key, given, kept) => {
	const env = { HOME: await makeHome() };
	const profile = ['--profile', 'local'];
	const set = await cli(['config', 'set', key, given, ...profile], { env });
	expect(set).toMatchObject({ code: 0, stdout: `${key}\t${kept}\n` });
	expect(await cli(['config', 'get', key, ...profile, '-o', 'tsv'], { env })).toMatchObject({
		stdout: `${kept}\n`,
	});
});
