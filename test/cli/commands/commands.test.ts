import { expect, it } from 'vitest';
import { cli } from '../../support/cli.js';

it('mailctl commands prints whether each command writes data', async () => {
	const { stdout } = await cli(['commands', '-o', 'json']);
	const rows: { command: string; writes: boolean }[] = JSON.parse(stdout);
	const reading = rows.filter(({ writes }) => !writes).map(({ command }) => command);
	expect(reading.toSorted()).toEqual(
		[
			...['lists list', 'lists get', 'fields list', 'fields get', 'webhooks list', 'webhooks get'],
			...[
				'subscribers list',
				'subscribers get',
				'subscribers find',
				'subscribers export',
				'subscribers stats',
			],
			...[
				'webhooks deliveries',
				'campaigns list',
				'campaigns get',
				'campaigns report',
				'campaigns links',
				'campaigns compare',
				'campaigns results',
				'sink',
				'report',
				'report compare',
				'templates list',
				'templates get',
				'templates render',
				'templates pull',
			],
			...['senders list', 'messages list', 'messages get', 'messages raw'],
			...[
				'diff',
				'why',
				'suppressions list',
				'suppressions export',
				'doctor',
				'demo',
				'commands',
				'version',
				'help',
			],
			...[
				'engine status',
				'engine settings get',
				'engine tokens list',
				'engine dkim list',
				'engine queue stats',
			],
			...[
				'engine bounces explain',
				'engine backup',
				'engine secrets status',
				'engine smtp-test',
				'profile list',
				'profile show',
			],
			...['config list', 'config get', 'config path', 'config explain'],
			...['completion bash', 'completion zsh', 'completion fish', 'completion powershell'],
		].toSorted(),
	);
});
