import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { writeSettings } from '../../src/engine/settings.js';
import { openStore } from '../../src/store/open.js';

async function write(values: Record<string, string>): Promise<Record<string, string>> {
	const store = await openStore(':memory:', { clock: systemClock, mode: 'create' });
	onTestFinished(() => store.close());
	await writeSettings({ store, clock: systemClock }, values);
	return store.reads.getSettings();
}

it('an error about limits shows how to write a domain', async () => {
	const message =
		'"gmail=10/m": no address ends in @gmail; write the whole domain, as in gmail.com=100/h or *=10/s.';
	await expect(write({ recipient_domain_limits: 'gmail=10/m, *=5/s' })).rejects.toMatchObject({
		fields: { recipient_domain_limits: [{ message }] },
	});
});

it.each([
	['bounce_address', 'Bounces@Example.COM', 'Bounces@example.com'],
	['bounce_address', 'b@bücher.example', 'b@xn--bcher-kva.example'],
	['page_sender_name', ' Birds & Co ', 'Birds & Co'],
	['page_color', '#0B6E4F', '#0b6e4f'],
	['page_logo_url', 'https://Example.com/a/logo.png?v=1', 'https://example.com/a/logo.png?v=1'],
	['page_logo_url', 'https://bücher.example/a%20b.png', 'https://xn--bcher-kva.example/a%20b.png'],
	['page_logo_url', 'data:image/svg+xml;base64,PHN2Zy8+', 'data:image/svg+xml;base64,PHN2Zy8+'],
	['smtp_ehlo_name', ' Mail.Bücher.example', 'mail.xn--bcher-kva.example'],
	['smtp_ehlo_name', '192.0.2.1', '[192.0.2.1]'],
	['smtp_ehlo_name', '[ipv6:2001:db8::1]', '[IPv6:2001:db8::1]'],
])('the setting %s stores %j as %j', async (name, given, kept) => {
	expect(await write({ [name]: given })).toEqual({ [name]: kept });
});

it.each([
	['__proto__', 'x'],
	['constructor', 'x'],
	['nonsense', 'x'],
	['bounce_address', 'example.com'],
	['bounce_address', 'much.too.long.a.prefix@example.com'],
	['bounce_address', 'a..b@example.com'],
	['bounce_address', 'a+b@example.com'],
	['bounce_address', '"a b"@example.com'],
	['page_sender_name', ''],
	['page_sender_name', 'two\nlines'],
	['page_sender_name', 'x'.repeat(101)],
	['page_color', 'red'],
	['page_color', '#fff'],
	['page_color', '#0b6e4f; } body { display: none'],
	['page_color', '#0b6e4f\n#'],
	['smtp_ehlo_name', 'mailhost'],
	['smtp_ehlo_name', 'mail.example.com\r\nMAIL'],
	['smtp_ehlo_name', 'https://mail.example.com'],
	['smtp_ehlo_name', '[mail.example.com]'],
	['page_logo_url', 'http://example.com/logo.png'],
	['page_logo_url', 'javascript:alert(1)'],
	['page_logo_url', 'logo.png'],
	['page_logo_url', 'https://example.com/'],
	['page_logo_url', 'https://example.com/logos/'],
	['page_logo_url', 'https://*.example.com/logo.png'],
	['page_logo_url', 'https://[::1]/logo.png'],
	['page_logo_url', 'https://user:secret@example.com/logo.png'],
	['page_logo_url', 'https://example.com/logo.svg#layer'],
	['page_logo_url', 'https://example.com/logo.png; script-src *'],
	['page_logo_url', 'data:text/html;base64,PHN2Zy8+'],
	['page_logo_url', 'data:image/svg+xml,<svg/>'],
	['page_logo_url', 'data:image/png;base64,AAAA"onload='],
	['page_logo_url', `data:image/png;base64,${'A'.repeat(50_000)}`],
])('the setting %s rejects %j', async (name, value) => {
	const writing = write(Object.fromEntries([[name, value]]));
	await expect(writing).rejects.toMatchObject({ code: 'invalid' });
	const error = await writing.catch((error: unknown) => error);
	expect(Object.keys(Object(error).fields)).toEqual([name]);
});
