// Errors that crossed between threads are told apart as before.
import { describe, expect, it } from 'vitest';
import { ApiError, StoreError } from '../../src/api/errors.js';
import { DatabaseMissing, UnsupportedDatabase } from '../../src/store/errors.js';
import { formatFailure, parseFailure } from '../../src/threads/remote.js';

/** As it arrives on the other side. */
const crossed = (error: unknown) => parseFailure(structuredClone(formatFailure(error)));

describe('an error that crossed', () => {
	it('keeps class, code, message, stack and what its cause said', () => {
		const error = new StoreError('disk_full', 'no room', { cause: new Error('SQLITE_FULL') });
		const arrived = crossed(error);
		expect(arrived).toBeInstanceOf(StoreError);
		expect(arrived).toMatchObject({ code: 'disk_full', message: 'no room', stack: error.stack });
		expect(arrived.cause).toMatchObject({ message: 'SQLITE_FULL' });
	});

	it('keeps what its class carries', () => {
		expect(crossed(new DatabaseMissing('/x.db'))).toEqual(new DatabaseMissing('/x.db'));
		expect(crossed(new DatabaseMissing('/x.db'))).toMatchObject({ path: '/x.db' });
		expect(crossed(new UnsupportedDatabase('MySQL'))).toEqual(new UnsupportedDatabase('MySQL'));
		const fields = { email: [{ code: 'unique', message: 'Taken.' }] };
		const invalid = crossed(new ApiError('invalid', 'email: Taken.', { fields }));
		expect(invalid).toBeInstanceOf(ApiError);
		expect(invalid).toMatchObject({ code: 'invalid', fields });
	});

	it('keeps name and code of any other', () => {
		const error = Object.assign(new TypeError('no'), { code: 'ERR_X' });
		expect(crossed(error)).toMatchObject({ name: 'TypeError', code: 'ERR_X', message: 'no' });
		expect(crossed('words')).toMatchObject({ name: 'Error', message: 'words' });
	});
});
