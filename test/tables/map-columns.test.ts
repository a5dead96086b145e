import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type HeaderOptions, mapHeader } from '../../src/tables/map-columns.js';

const fields = [
	{ variable: 'city', name: 'Home town' },
	{ variable: 'plan', name: '' },
];

function map(header: readonly string[], options: Partial<HeaderOptions> = {}) {
	return mapHeader(header, { fields, ...options });
}

/** Returns `column→target` for each column of a mapping. */
function targets(header: readonly string[], options: Partial<HeaderOptions> = {}): string[] {
	const result = map(header, options);
	if (result.kind === 'refused') throw new Error(result.findings.map(({ message }) => message).join('; '));
	return result.mapping.columns.map(({ index, target }) => `${index}→${target}`);
}

function findings(header: readonly string[], options: Partial<HeaderOptions> = {}): string[] {
	const result = map(header, options);
	return result.kind === 'refused' ? result.findings.map(({ code, column }) => `${code} ${column}`) : [];
}

describe('column names', () => {
	it.each([
		'email',
		'Email',
		' E-MAIL ',
		'e_mail',
		'Email address',
		'E-Mail Address',
		'mail',
		'\uFEFFemail',
		'Ｅmail',
	])('such as %j mean the email', (name) => expect(targets([name])).toEqual(['0→email']));

	it('can name a property of a subscriber, or a field by its variable, its name or meta.VARIABLE', () => {
		expect(targets(['Email', 'NAME', 'Is Active', 'disable reason', 'City', 'meta.plan'])).toEqual([
			'0→email',
			'1→name',
			'2→is_active',
			'3→disable_reason',
			'4→meta.city',
			'5→meta.plan',
		]);
		expect(targets(['home TOWN', 'email'])).toEqual(['0→meta.city', '1→email']);
	});

	it('are overridden by --map', () => {
		expect(targets(['Contact', 'name'], { map: ['Contact=email', 'name=city'] })).toEqual([
			'0→email',
			'1→meta.city',
		]);
		expect(targets(['a=b', 'x'], { map: ['a=b=email', 'X=-'] })).toEqual(['0→email']);
	});

	it('that mailctl adds are skipped in its own exports, but not in other files', () => {
		const cells =
			'id=7 list_id=1 email=a@x is_active=true source=API opt_in_signed=false is_email_verified=true';
		const own = `${cells} date_created=2026-11-21T12:00:00.000000`;
		const left = (row: string) => {
			const pairs = row.split(' ').map((pair) => pair.split('='));
			const sampled = { cells: pairs.map(([, cell = 'x']) => [cell]), rows: 1, isWhole: true };
			const source = { variable: 'source', name: 'Source' };
			const result = map(
				pairs.map(([name = '']) => name),
				{ sampled, fields: [source] },
			);
			if (result.kind === 'mapped') return result.mapping.ignored.join(' ');
			return result.findings.map(({ column }) => column);
		};
		expect(left(`${own} meta.source=x _line _code _error`)).toBe(
			'id list_id source opt_in_signed is_email_verified date_created _line _code _error',
		);
		expect(left('email=a@x source=IMPORT id=7')).toBe('source id');
		// In a file that is not an export, columns of these names are not skipped.
		expect(left('email=a@x id=7')).toEqual(['id']);
		expect(left('email=a@x list_id=1 date_created=2026-11-21')).toEqual(['list_id', 'date_created']);
		expect(left('email=a@x is_active=true id=C-7')).toEqual(['id']);
		expect(targets(['email', 'id', 'source'], { unknown: 'create' })).toContain('2→meta.source');
	});

	it('that are unknown become new fields on request', () => {
		const result = map(['email', 'First Name', 'Prénom', 'meta.zip', 'Город'], {
			unknown: 'create',
			map: ['Город=town'],
		});
		expect(result).toMatchObject({
			kind: 'mapped',
			mapping: {
				newFields: [
					{ variable: 'first_name', name: 'First Name' },
					{ variable: 'prenom', name: 'Prénom' },
					{ variable: 'zip', name: 'meta.zip' },
					{ variable: 'town', name: 'Город' },
				],
			},
		});
	});
});

describe('a header', () => {
	it('is rejected with a list of its unknown columns and similar fields', () => {
		const result = map(['email', 'ctiy', 'Shoe']);
		expect(result).toEqual({
			kind: 'refused',
			findings: [
				{
					code: 'unknown',
					column: 'ctiy',
					message: 'unknown column "ctiy"',
					suggestions: ['city'],
				},
				{
					code: 'unknown',
					column: 'Shoe',
					message: 'unknown column "Shoe"',
					suggestions: [],
				},
			],
		});
	});

	it('is rejected if it has no email column, or two columns with one target', () => {
		expect(findings(['name', 'city'])).toEqual(['no_email ']);
		expect(findings(['ann@example.com', 'city'])).toEqual(['unknown ann@example.com', 'no_header ']);
		expect(findings(['email', 'name', 'name'])).toEqual(['duplicate name']);
		expect(findings(['email', 'E-Mail'])).toEqual(['same_target E-Mail']);
		expect(findings(['email', 'city', 'meta.city'])).toEqual(['same_target meta.city']);
		expect(findings(['email', 'A b', 'A-b'], { unknown: 'create' })).toEqual(['same_target A-b']);
	});

	it('is rejected if a --map has an unknown or missing column or target', () => {
		expect(findings(['email', 'Twon'], { map: ['Town=city', 'Twon=cty', 'x', '=city'] })).toEqual([
			'unknown_map_source Town',
			'bad_map x',
			'bad_map =city',
			'unknown_map_target Twon',
		]);
	});

	it('is rejected if one of its names matches two fields', () => {
		const twins = [
			{ variable: 'a', name: 'Size' },
			{ variable: 'b', name: 'size' },
		];
		expect(findings(['email', 'SIZE'], { fields: twins })).toEqual(['ambiguous SIZE']);
	});

	it('is rejected if one of its names cannot become a variable', () => {
		expect(findings(['email', '都市', '__proto__', ''], { unknown: 'create' })).toEqual([
			'bad_field_name 都市',
			'bad_field_name __proto__',
			'bad_field_name ',
		]);
	});
});

describe('hostile headers', () => {
	it('that name object members such as __proto__ are unknown columns', () => {
		expect(findings(['email', '__proto__', 'constructor', 'toString'])).toEqual([
			'unknown __proto__',
			'unknown constructor',
			'unknown toString',
		]);
		expect(targets(['email', '__proto__', 'constructor'], { unknown: 'ignore' })).toEqual(['0→email']);
		expect(Object.hasOwn(Object.prototype, 'email')).toBe(false);
	});

	it('give a mapping with one email column, or errors', () => {
		fc.assert(
			fc.property(fc.array(fc.string({ unit: 'binary' })), fc.array(fc.string()), (header, pairs) => {
				for (const unknown of ['refuse', 'create', 'ignore'] as const) {
					const result = map([...header, 'email'], { map: pairs, unknown });
					if (result.kind === 'refused') expect(result.findings.length).toBeGreaterThan(0);
					else expect(result.mapping.columns.filter(({ target }) => target === 'email')).toHaveLength(1);
				}
			}),
		);
	});
});

describe('joined columns', () => {
	const joins = (header: readonly string[], options: Partial<HeaderOptions> = {}) => {
		const result = map(header, options);
		if (result.kind === 'refused') throw new Error(result.findings.map(({ message }) => message).join('; '));
		return result.mapping.columns;
	};

	it('are joined into the name or a field in the order of --map, and not stored separately', () => {
		expect(joins(['Nachname', 'email', 'Vorname'], { map: ['vorname + NACHNAME=name'] })).toEqual([
			{ index: 1, target: 'email' },
			{ index: 2, joined: [0], target: 'name' },
		]);
		expect(joins(['email', 'Vorname', 'Name'], { map: ['Vorname+Name=name'] }).slice(1)).toEqual([
			{ index: 1, joined: [2], target: 'name' },
		]);
		expect(joins(['email', 'a', 'b', 'c'], { map: ['a+b+c=whole'], unknown: 'create' }).slice(1)).toEqual([
			{ index: 1, joined: [2, 3], target: 'meta.whole' },
		]);
	});

	it('can have a plus sign in their names', () => {
		expect(targets(['email', 'A+B', 'C'], { map: ['A+B=name', 'C=-'] })).toEqual(['0→email', '1→name']);
		expect(joins(['email', 'A+B', 'A', 'C'], { map: ['A+B+C=name', 'A=-'] }).slice(1)).toEqual([
			{ index: 1, joined: [3], target: 'name' },
		]);
		expect(targets(['email', 'C++', '1 + 1'], { map: ['C++=city', '1 + 1=plan'] })).toEqual([
			'0→email',
			'1→meta.city',
			'2→meta.plan',
		]);
	});
});

describe('column names in other languages', () => {
	const map = (header: readonly string[], options: Partial<Parameters<typeof mapHeader>[1]> = {}) =>
		mapHeader(header, { fields: [], ...options });

	it.each([
		'E-Mail-Adresse',
		'Courriel',
		'Correo electrónico',
		'Adresse e-mail',
		'メール',
		'Электронная почта',
		'Sähköposti',
		'Adres e-mail',
		'E-posta',
		'邮箱',
		'이메일',
	])('such as %s mean the email', (name) => {
		expect(map([name])).toMatchObject({
			kind: 'mapped',
			mapping: { columns: [{ index: 0, target: 'email' }] },
		});
	});

	it('are overridden by an English name, a field of the same name, and --map', () => {
		expect(map(['email', 'Courriel'])).toMatchObject({
			kind: 'refused',
			findings: [{ code: 'unknown', column: 'Courriel' }],
		});
		const fields = [{ variable: 'courriel', name: 'Courriel' }];
		expect(map(['email', 'Courriel'], { fields })).toMatchObject({
			mapping: { columns: [{ target: 'email' }, { target: 'meta.courriel' }] },
		});
		expect(map(['Courriel', 'X'], { map: ['X=email', 'Courriel=-'] })).toMatchObject({
			mapping: { columns: [{ index: 1, target: 'email' }] },
		});
	});

	it.each([
		['Umsatz (€)', 'umsatz'],
		['Straße & Nr.', 'strasse_nr'],
		['Prénom', 'prenom'],
		['% open rate', 'open_rate'],
		['First  Name', 'first_name'],
		['Πόλη', 'poli'],
		['Ημερομηνία γέννησης', 'imerominia_gennisis'],
		['Дата рождения', 'data_rozhdeniya'],
		['Київ', 'kiiv'],
		['2024', '_2024'],
		['9 lives', '_9_lives'],
		['２０２４ (€)', '_2024'],
	])('give a new field its variable: %s becomes %s', (column, variable) => {
		expect(map(['email', column], { unknown: 'create' })).toMatchObject({
			mapping: { newFields: [{ variable, name: column }] },
		});
	});
});

describe('columns that say who may get mail', () => {
	const sampled = (...columns: readonly (readonly string[])[]) => {
		return { cells: columns.map((cells) => cells.filter((cell) => cell !== '')), rows: 2, isWhole: true };
	};
	const two = sampled(['a@x', 'b@x'], ['active', 'unsubscribed'], ['', '2026-01-01']);

	it.each([
		'refuse',
		'create',
		'ignore',
	] as const)('are rejected if the setting for unknown columns is %s', (unknown) => {
		expect(findings(['email', 'Status', 'UNSUB_TIME'], { unknown, sampled: two })).toEqual([
			'state Status',
			'state UNSUB_TIME',
		]);
		expect(findings(['email', 'meta.status', 'x'], { unknown, sampled: two })[0]).toBe('state meta.status');
	});

	it('are read, skipped or stored as fields if --map says so', () => {
		const map = ['Status=state', 'UNSUB_TIME=-'];
		const result = mapHeader(['email', 'Status', 'UNSUB_TIME'], { fields, map, sampled: two });
		expect(result).toMatchObject({
			mapping: { columns: [{}, { index: 1, target: 'state' }], states: [{ index: 1 }], leftOut: [2] },
		});
		expect(targets(['email', 'Status'], { map: ['Status=plan'], sampled: two })).toEqual([
			...['0→email', '1→meta.plan'],
		]);
	});

	it('become new fields only if --map says meta.FIELD, or a second column says who may get mail', () => {
		const as = (target: string) => ({ unknown: 'create', map: [`Status=${target}`], sampled: two }) as const;
		expect(findings(['email', 'Status'], as('status'))).toEqual(['state Status']);
		expect(targets(['email', 'Status'], as('meta.status'))).toEqual(['0→email', '1→meta.status']);
		expect(targets(['email', 'Status', 'is_active'], as('status'))).toHaveLength(3);
		const plans = { ...as('tier'), sampled: sampled(['a@x'], ['gold']) };
		expect(targets(['email', 'Status'], plans)).toEqual(['0→email', '1→meta.tier']);
		expect(findings(['email', 'Status'], as('tier'))).toEqual(['state Status']);
	});

	it('can be stored in an existing field only if another column says who may get mail', () => {
		const known = [{ variable: 'status', name: '' }];
		expect(findings(['email', 'status'], { fields: known, sampled: two })).toEqual(['state status']);
		const rows = sampled(['a@x'], ['unsubscribed'], ['true']);
		expect(targets(['email', 'status', 'is_active'], { fields: known, sampled: rows })).toHaveLength(3);
		expect(targets(['email', 'status'], { fields: known, sampled: sampled(['a@x'], ['gold']) })).toEqual([
			...['0→email', '1→meta.status'],
		]);
		expect(targets(['email', 'status'], { fields: known })).toEqual(['0→email', '1→meta.status']);
	});
});
