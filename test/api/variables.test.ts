import { expect, it } from 'vitest';
import { withOwn } from '../../src/api/variables.js';

it('a recipient’s own values replace shared values of the same name, and __proto__ is an ordinary name', () => {
	expect(withOwn({ city: 'Oslo', plan: 'free' }, { plan: 'pro' })).toEqual({ city: 'Oslo', plan: 'pro' });
	const own = JSON.parse('{"__proto__": "mine"}');
	expect(Object.entries(withOwn({ city: 'Oslo' }, own))).toEqual([
		['city', 'Oslo'],
		['__proto__', 'mine'],
	]);
	expect(Object.entries(withOwn(own, { city: 'Oslo' }))).toEqual([
		['__proto__', 'mine'],
		['city', 'Oslo'],
	]);
});
