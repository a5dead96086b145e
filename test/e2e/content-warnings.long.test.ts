import { afterEach, describe, expect, it } from 'vitest';
import { isBuilt } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { startServing } from '../support/serving.js';
import { startSmtpSink } from '../support/smtp-sink.js';

const html = '<style>p { color: red }</style><p style="margin: 0; x;">Hello</p>';
const warning = /^CSS was not inlined: .* The HTML goes out as written\.$/;
const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
	for (const close of closing.splice(0).reverse()) await close();
});

async function startSink() {
	const sink = await startSmtpSink({});
	closing.push(() => sink.close());
	return sink;
}

describe.runIf(isBuilt)('CSS that cannot be inlined', () => {
	it('is reported once in the server’s log, and the mail is sent', async () => {
		const sink = await startSink();
		const serving = await startServing({ smtp: sink.port });
		closing.push(() => serving.stop('SIGKILL'));
		const body = {
			from: 'news@example.com',
			to: ['a@example.com', 'b@example.com'],
			subject: 'Hello',
			html_body: html,
		};
		const answer = await serving.fetch('/message/send/', {
			method: 'POST',
			headers: { 'Content-Type': 'application/json' },
			body: JSON.stringify(body),
		});
		expect(answer.status).toBe(200);
		await sink.until(2);
		const warnings = () => serving.log().filter(({ event }) => event === 'content_warning');
		await eventually(() => expect(warnings().length).toBeGreaterThan(0));
		expect(warnings().map((line) => line['warning'])).toEqual([expect.stringMatching(warning)]);
	});
});
