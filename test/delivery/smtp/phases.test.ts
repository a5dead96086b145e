import { describe, expect, it } from 'vitest';
import { PhaseTracker } from '../../../src/delivery/smtp/opening.js';

describe('the opening of a session', () => {
	it('reads its phase from the trace', () => {
		const phases: string[] = [];
		const tracker = new PhaseTracker((phase) => phases.push(phase));
		expect(tracker.phase).toBe('connect');
		for (const line of ['EHLO me', 'STARTTLS', 'EHLO me', 'AUTH PLAIN'])
			tracker.note({ from: 'client', line });
		expect(phases).toEqual(['ehlo', 'tls', 'ehlo', 'auth']);
	});

	it('keeps the keywords of EHLO with parameters', () => {
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

	it('forgets extensions offered before STARTTLS', () => {
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
