import { expect, it } from 'vitest';
import { withOwn } from '../../src/api/variables.js';

it("a recipient's own values replace shared ones, whatever their names are", () => {
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
