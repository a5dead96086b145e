import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { OutStream } from '../../../src/cli/frame/io.js';
import { withStatusLine } from '../../../src/cli/render/progress.js';

function terminal() {
	const written: string[] = [];
	const stream: OutStream = {
		isTTY: true,
		columns: 20,
		raw: new PassThrough(),
		write: async (text) => void written.push(String(text)),
	};
	return { line: withStatusLine(stream), text: () => written.join('') };
}

describe('the status line', () => {
	it('is removed before other output, and drawn again below', async () => {
		const { line, text } = terminal();
		line.stand('sending 1 of 3');
		await line.write('warning: slow\n');
		line.stand('sending 2 of 3');
		line.stand(null);
		await line.write('sent 3\n');
		expect(text()).toBe(
			'\r\x1b[Ksending 1 of 3\r\x1b[Kwarning: slow\nsending 1 of 3\r\x1b[Ksending 2 of 3\r\x1b[Ksent 3\n',
		);
	});

	it('is not drawn again once it is closed', async () => {
		const { line, text } = terminal();
		line.wait('waiting');
		line.close();
		line.wait('waiting');
		line.stand('sending 1 of 3');
		await line.write('error: no\n');
		expect(text()).toBe('\r\x1b[Kwaiting\r\x1b[Kerror: no\n');
	});

	it('is cut to the terminal’s width, and is not drawn if it has no text', async () => {
		const { line, text } = terminal();
		line.stand(null);
		await line.write('a\n');
		line.stand('x'.repeat(40));
		expect(text()).toBe(`a\n\r\x1b[K${'x'.repeat(19)}`);
	});
});
