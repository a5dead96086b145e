import { it } from 'vitest';
import { expectGolden } from '../support/golden/record.js';
import { recordWay } from '../support/golden/ways.js';

it('every call on a database of this machine prints what it did', { timeout: 600_000 }, async () => {
	await expectGolden('local.txt', await recordWay('local'));
});
