/** Settings are checked by name, whatever a name is called. */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { writeSettings } from '../../src/engine/settings.js';
import { openStore } from '../../src/store/open.js';

it.each(['__proto__', 'constructor', 'toString', 'nonsense'])('refuses a setting called %s', async (name) => {
	const store = await openStore(':memory:', { clock: systemClock, mode: 'create' });
	const write = writeSettings({ store, clock: systemClock }, Object.fromEntries([[name, 'x']]));
	await expect(write).rejects.toMatchObject({ code: 'invalid' });
	expect(await store.reads.getSettings()).toEqual({});
	await store.close();
});

it.each([
	['Bounces@Example.COM', 'bounces@example.com'],
	['b@bücher.example', 'b@xn--bcher-kva.example'],
])('keeps the bounce address %s as %s', async (given, kept) => {
	const store = await openStore(':memory:', { clock: systemClock, mode: 'create' });
	await writeSettings({ store, clock: systemClock }, { bounce_address: given });
	expect(await store.reads.getSettings()).toEqual({ bounce_address: kept });
	await store.close();
});

it.each([
	'example.com',
	'much.too.long.a.prefix@example.com',
	'a+b@example.com',
	'"a b"@example.com',
])('refuses the bounce address %s', async (given) => {
	const store = await openStore(':memory:', { clock: systemClock, mode: 'create' });
	const write = writeSettings({ store, clock: systemClock }, { bounce_address: given });
	await expect(write).rejects.toMatchObject({ fields: { bounce_address: [{ code: 'invalid' }] } });
	await store.close();
});

it('refuses a limit on a domain that no address is of, and says how domains are written', async () => {
	const store = await openStore(':memory:', { clock: systemClock, mode: 'create' });
	const write = writeSettings(
		{ store, clock: systemClock },
		{ recipient_domain_limits: 'gmail=10/m, *=5/s' },
	);
	const message =
		'"gmail=10/m": no address ends in @gmail; write the domain whole, as in gmail.com=100/1h or *=10/s.';
	await expect(write).rejects.toMatchObject({ fields: { recipient_domain_limits: [{ message }] } });
	await store.close();
});
