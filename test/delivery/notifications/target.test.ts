import { expect, it } from 'vitest';
import { isPublicAddress, refuseTarget } from '../../../src/delivery/notifications/target.js';

const nobody = async () => {
	throw new Error('ENOTFOUND');
};

it.each([
	'http://93.184.216.34/',
	'https://[2606:2800:220:1:248:1893:25c8:1946]/',
	'http://[64:ff9b::5db8:d822]/',
	'https://hooks.example.com/in',
])('a target with %s is accepted, even if a name does not resolve', async (url) => {
	expect(await refuseTarget(url, nobody)).toBeNull();
});

it('a name with one private address is rejected, and so is an invalid one', async () => {
	const both = async () => ['93.184.216.34', '10.0.0.1'];
	expect(await refuseTarget('http://two.example/', both)).toBe('private_target');
	expect(isPublicAddress('not an address')).toBe(false);
});
