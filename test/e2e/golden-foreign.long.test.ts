import { it } from 'vitest';
import { djangoMissing } from '../support/drf.js';
import { expectGolden } from '../support/golden/record.js';
import { recordWay } from '../support/golden/ways.js';

const missing = await djangoMissing();

it.skipIf(missing !== null)(
	'every call on a Django REST framework service prints the recorded output',
	{ timeout: 600_000 },
	async () => {
		await expectGolden('foreign.txt', await recordWay('foreign'));
	},
);
