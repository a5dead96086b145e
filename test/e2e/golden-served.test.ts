import { it } from 'vitest';
import { expectGolden } from '../support/golden/record.js';
import { recordWay } from '../support/golden/ways.js';

it('every call on a server prints the recorded output', { timeout: 600_000 }, async () => {
	await expectGolden('served.txt', await recordWay('served'));
});
