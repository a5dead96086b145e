import { describe, expect, it } from 'vitest';
import { campaignColumns, misnamedVariables, toRecipient } from '../../src/jobs/campaigns.js';

const header = ['email', 'Имя', 'First Name', 'city'];

function found(text: string) {
	const result = campaignColumns(header, []);
	if (result.kind === 'refused') throw new Error('the header can be used');
	return misnamedVariables([text], header, result.columns).map(({ written, column, variable }) => [
		...[written, column, variable],
	]);
}

it('a variable may be several columns that --map joins', () => {
	const result = campaignColumns(['email', 'Vorname', 'Nachname'], ['Vorname+Nachname=name']);
	expect(result).toMatchObject({
		kind: 'columns',
		columns: {
			email: 0,
			variables: [
				{ name: 'name', index: 1, joined: [2] },
				{ name: 'Vorname', index: 1 },
				{ name: 'Nachname', index: 2 },
			],
		},
	});
	if (result.kind === 'refused') throw new Error('the header can be used');
	const contextOf = (cells: string[]) => toRecipient({ kind: 'row', line: 2, cells }, result.columns);
	expect(contextOf(['kurz@example.com', '', 'Kurz'])).toMatchObject({ context: { name: 'Kurz' } });
	expect(contextOf(['ann@example.com', ' Ann ', 'Lee'])).toMatchObject({ context: { name: 'Ann Lee' } });
});

it('a joined column keeps its variable, unless it is mapped or left out', () => {
	const named = (map: string[], columns = ['email', 'First', 'Last name']) => {
		const result = campaignColumns(columns, map);
		if (result.kind === 'refused') throw new Error('the header can be used');
		return result.columns.variables.map(({ name, index, joined = [] }) => [name, index, ...joined]);
	};
	const own = [
		['First', 1],
		['last_name', 2],
	];
	expect(named(['First+Last name=name'])).toEqual([['name', 1, 2], ...own]);
	expect(named(['First+Last name=name', 'Last name+First=sorted'])).toEqual([
		['name', 1, 2],
		['sorted', 2, 1],
		...own,
	]);
	expect(named(['First+Last name=name', 'First=given'])).toEqual([['given', 1], ['name', 1, 2], own[1]]);
	expect(named(['First+Last name=name', 'First=-'])).toEqual([['name', 1, 2], own[1]]);
	expect(named(['Name+Last=name'], ['email', 'Name', 'Last'])).toEqual([
		['name', 1, 2],
		['Last', 2],
	]);
});

describe('a column that the text refers to', () => {
	it.each([
		['Hello #Имя#!', [['Имя', 'Имя', 'imya']]],
		[
			'Hello #имя# and # ИМЯ #',
			[
				['имя', 'Имя', 'imya'],
				[' ИМЯ ', 'Имя', 'imya'],
			],
		],
		[
			'Hello #First Name|friend#, #first  name#',
			[
				['First Name', 'First Name', 'first_name'],
				['first  name', 'First Name', 'first_name'],
			],
		],
		[
			'#City# or #CITY#',
			[
				['City', 'city', 'city'],
				['CITY', 'city', 'city'],
			],
		],
		['#first_name# city #city#', []],
		['No. #5 in #Имя#', [['Имя', 'Имя', 'imya']]],
		['a { color: #fff } b { color: #000; } #city', []],
		['nothing', []],
	])('is found in %j', (text, expected) => {
		expect(found(text)).toEqual(expected);
	});
});
