import { describe, expect, it } from 'vitest';
import { PhaseTracker } from '../../../src/delivery/smtp/opening.js';

describe('the opening of a session', () => {
	it('knows its phase from what is said', () => {
		const phases: string[] = [];
		const tracker = new PhaseTracker((phase) => phases.push(phase));
		expect(tracker.phase).toBe('connect');
		for (const line of ['EHLO me', 'STARTTLS', 'EHLO me', 'AUTH PLAIN'])
			tracker.note({ from: 'client', line });
		expect(phases).toEqual(['ehlo', 'tls', 'ehlo', 'auth']);
	});

	it('keeps the keywords of EHLO with their parameters', () => {
		const tracker = new PhaseTracker(() => undefined);
		tracker.note({ from: 'client', line: 'EHLO me' });
		tracker.note({
			from: 'server',
			line: '250-mx.test Hi\n250-size 1000\n250-AUTH=PLAIN LOGIN\n250 Pipelining',
		});
		expect([...tracker.extensions]).toEqual([
			['SIZE', '1000'],
			['AUTH', 'PLAIN LOGIN'],
			['PIPELINING', ''],
		]);
	});

	it('forgets what was offered before STARTTLS and is not offered after it', () => {
		const tracker = new PhaseTracker(() => undefined);
		tracker.note({ from: 'client', line: 'EHLO me' });
		tracker.note({ from: 'server', line: '250-mx.test\n250-PIPELINING\n250 STARTTLS' });
		tracker.note({ from: 'client', line: 'STARTTLS' });
		expect(tracker.extensions.size).toBe(0);
		tracker.note({ from: 'client', line: 'EHLO me' });
		tracker.note({ from: 'server', line: '250-mx.test\n250 8BITMIME' });
		expect([...tracker.extensions.keys()]).toEqual(['8BITMIME']);
	});
});
