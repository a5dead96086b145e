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
