import { describe, expect, it } from 'vitest';
import { isPublicAddress, refuseTarget } from '../../../src/delivery/notifications/target.js';

const nobody = async () => {
	throw new Error('ENOTFOUND');
};

describe('the target of a notification', () => {
	it.each([
		'http://127.0.0.1/',
		'http://2130706433/',
		'http://0x7f.1/',
		'http://017700000001/',
		'http://①②⑦.0.0.1/',
		'http://10.1.2.3/',
		'http://168.63.129.16/machine',
		'http://[::ffff:168.63.129.16]/',
		'http://[4000::1]/',
		'http://[1fff::1]/',
		'http://[fec0::1]/',
		'http://[64:ff9b:1::5db8:d822]/',
		'http://[100::1]/',
		'http://172.16.0.1/',
		'http://192.168.1.1/',
		'http://169.254.169.254/latest/meta-data/',
		'http://100.64.0.1/',
		'http://224.0.0.1/',
		'http://0.0.0.0/',
		'http://255.255.255.255/',
		'http://[::1]/',
		'http://[::]/',
		'http://[::ffff:127.0.0.1]/',
		'http://[::ffff:7f00:1]/',
		'http://[64:ff9b::7f00:1]/',
		'http://[64:ff9b::10.0.0.1]/',
		'http://[2002:7f00:1::]/',
		'http://[fe80::1]/',
		'http://[fc00::1]/',
		'http://[fd00:ec2::254]/',
		'http://[ff02::1]/',
		'http://[::7f00:1]/',
	])('is refused: %s', async (url) => {
		expect(await refuseTarget(url, nobody)).toBe('private_target');
	});

	it.each([
		'http://93.184.216.34/',
		'https://[2606:2800:220:1:248:1893:25c8:1946]/',
		'http://[64:ff9b::5db8:d822]/',
	])('is accepted: %s', async (url) => {
		expect(await refuseTarget(url, nobody)).toBeNull();
	});

	it('is refused when one of the addresses of its name is private', async () => {
		expect(
			await refuseTarget('http://two.example/', async () => ['93.184.216.34', '10.0.0.1']),
		).not.toBeNull();
	});

	it('is accepted while its name does not resolve', async () => {
		expect(await refuseTarget('https://hooks.example.com/in', nobody)).toBeNull();
	});

	it('is no address at all', () => {
		expect(isPublicAddress('not an address')).toBe(false);
	});
});
