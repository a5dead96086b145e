/** Good and odd requests for the service document's API, the same ones for the same numbers. */

export interface Asked {
	method: string;
	path: string;
	/** `good`: the service's own; null: none. */
	token: string | null;
	headers: Record<string, string>;
	raw?: string;
}

type Random = () => number;

const odd = [
	'null',
	'true',
	'false',
	'[]',
	'{}',
	'["x"]',
	'{"a":1}',
	'0',
	'1',
	'-1',
	'7',
	'1.5',
	'5.0',
	'1e5',
	'-0',
	'-0.0',
	'12345678901234567890',
	'9007199254740993',
	'1E+16',
	'1.10',
	'""',
	'"  "',
	'"x"',
	'" x "',
	'"\\u0000"',
	'"a\\u0000b"',
	'"\\ud800"',
	'"\\u00e9\\u2028"',
	'"0"',
	'"off"',
	'"True"',
	'[[1]]',
	'[null]',
	`"${'x'.repeat(256)}"`,
	'"\\t\\n"',
	'"😀"',
] as const;

const good: Readonly<Record<string, readonly string[]>> = {
	name: ['"News"', '"N"', '""'],
	email_reason: ['"asked"', '"You signed up"'],
	email: [
		'"p1@example.com"',
		'"new@example.com"',
		'"x@example.org"',
		'"a.b+c@example.com"',
		'"x"',
		'"@"',
		'"a@b"',
	],
	is_active: ['true', 'false', '"yes"', '"N"', '1', '0', '1.0', '0.0', '"t"'],
	meta: ['{}', '{"city":"Oslo"}', '"{}"', '"{\\"age\\":5}"', '{"nope":1}'],
	variable: ['"town"', '"city"', '"zip"'],
	url: ['"https://example.com/x"', '"http://example.org"', '"x"', '"https://"'],
	type: ['"OPENED"', '"HARDBOUNCED"', '"opened"', '"NO"'],
	is_auth_enabled: ['true', 'false', '"on"', '"No"'],
	login: ['"u"', '""'],
	password: ['"p"', '""'],
	from: ['"news@example.com"', '["news@example.com"]', '"x"'],
	to: ['["a@example.org"]', '["a@example.org","b@example.org"]', '["x"]', '[]', '"a@example.org"'],
	subject: ['"Hi"', '5'],
	text_body: ['"Hello"'],
	html_body: ['"<p>Hello</p>"'],
	cc: ['["c@example.org"]', '[]', '["x"]'],
	bcc: ['["d@example.org"]', '[]'],
	reply_to: ['["r@example.org"]'],
	headers: ['{"X-A":"b"}', '{}', '{"X-A":5}', '{"X-A":null}'],
	context: ['{"a":"b"}', '{"a":5}', '{"a":1.10}', '{"a":[]}'],
	tag: ['"t"'],
	disable_inline: ['true', '"off"'],
	disable_tracking: ['true', '"maybe"'],
};

const resources = [
	{ path: '/sub/lists/', fields: ['name', 'email_reason'] },
	{ path: '/sub/lists/1/subscribers/', fields: ['email', 'name', 'meta', 'is_active'] },
	{ path: '/sub/fields/', fields: ['variable', 'name'] },
	{ path: '/webhooks/', fields: ['url', 'type', 'is_auth_enabled', 'login', 'password'] },
] as const;

const sendFields = [
	'from',
	'to',
	'subject',
	'text_body',
	'html_body',
	'cc',
	'bcc',
	'reply_to',
	'headers',
	'context',
	'tag',
	'disable_inline',
	'disable_tracking',
];

const ids = [
	'1',
	'2',
	'3',
	'99',
	'01',
	'1%20',
	'%201',
	'+1',
	'-1',
	'0',
	'abc',
	'1e0',
	'1_0',
	'%D9%A1',
	'%31',
	'%00',
	'x%00',
];
const queries = [
	'',
	'',
	'page=1',
	'page=%201',
	'page=01',
	'page=2',
	'page=0',
	'page=-1',
	'page=last',
	'page=abc',
	'page=',
	'page=1.0',
	'page=%2B1',
	'page=1_0',
	'page=%D9%A1',
	'page_size=2',
	'page_size=%202',
	'page_size=0',
	'page_size=-1',
	'page_size=x',
	'page_size=5000',
	'page_size=1&page=2',
	'page_size=1&page=last&x=%20a',
	'page=1&page=2',
	'unknown=1',
	'page=%00',
	'is_active=true',
	'is_active=False',
	'is_active=0',
	'is_active=FALSE',
	'is_active=no',
	'is_active=',
	'is_active=1&is_active=0',
	'email__icontains=P1',
	'email__icontains=%25',
	'email__icontains=_',
	'email__icontains=%20p1%20',
	'email__exact=p1@example.com',
	'email__exact=p1',
	'email__icontains=%00',
	'email__exact=',
	'email=x',
	'email__icontains=p&is_active=true&page_size=1',
];
const days = ['', '01.02.2026', '03.02.2026', '1.2.2026', '2026-02-01', '31.02.2026', 'x', '01.02.26', '%20'];
const methods = [
	'GET',
	'GET',
	'HEAD',
	'POST',
	'PUT',
	'PATCH',
	'DELETE',
	'OPTIONS',
	'TRACE',
	'PROPFIND',
	'FOO',
	'PURGE',
];
const contentTypes = [
	'text/plain',
	'',
	'application/json; charset=utf-8',
	'application/*',
	'APPLICATION/JSON',
	'application/xml',
	'json',
	'text/json',
];
const raws = [
	'',
	'{',
	'[]',
	'5',
	'null',
	'"x"',
	'{"name":"a","name":"b","email_reason":"x"}',
	'{"name":NaN}',
	'{"name":"a",}',
	'01',
	' {} ',
	'\ufeff{}',
	'{"a":1}{}',
];

export function randomRequest(random: Random): Asked {
	const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
	const chance = (probability: number) => random() < probability;
	const asked = chance(0.12) ? report(pick) : chance(0.2) ? send(pick, chance) : resource(pick, chance);
	if (chance(0.04)) return { ...asked, token: pick([null, 'wrong', '']) };
	return asked;
}

type Pick = <T>(values: readonly T[]) => T;
type Chance = (probability: number) => boolean;

function resource(pick: Pick, chance: Chance): Asked {
	const { path, fields } = pick(resources);
	const isOne = chance(0.5);
	const base = chance(0.04) ? path.replace('/1/', '/99/') : path;
	const at = isOne ? `${base}${chance(0.6) ? pick(['1', '2', '3']) : pick(ids)}/` : base;
	const method = chance(0.1)
		? pick(methods)
		: isOne
			? pick(['GET', 'PUT', 'PATCH', 'PATCH', 'HEAD', 'DELETE'])
			: pick(['GET', 'POST', 'POST']);
	// Two rows are spared, or there would soon be nothing to ask about.
	const shown = method === 'DELETE' && isOne ? `${base}${pick(['98', 'abc', '0'])}/` : at;
	const query = method === 'GET' || method === 'HEAD' ? pick(queries) : '';
	return withBody({ method, path: `${shown}${query === '' ? '' : `?${query}`}`, fields, pick, chance });
}

function send(pick: Pick, chance: Chance): Asked {
	return withBody({
		method: chance(0.95) ? 'POST' : pick(methods),
		path: '/message/send/',
		fields: sendFields,
		pick,
		chance,
	});
}

function report(pick: Pick): Asked {
	const query = [
		`date_from=${pick(days)}`,
		`date_to=${pick(days)}`,
		`campaign_unique_id=${pick(['', 'x', '7f1c6f5e-4a43-4d0f-9c1d-0a4f5f9c2f11', '7F1C6F5E4A434D0F9C1D0A4F5F9C2F11'])}`,
		pick(['', 'event_types=SENT', 'event_types=X', 'event_types=SENT&event_types=OPENED', 'event_types=']),
	];
	return {
		method: 'GET',
		path: `/stat/reports/events-report/?${query.filter(Boolean).join('&')}`,
		token: 'good',
		headers: {},
	};
}

interface Making {
	method: string;
	path: string;
	fields: readonly string[];
	pick: Pick;
	chance: Chance;
}

function withBody({ method, path, fields, pick, chance }: Making): Asked {
	if (['GET', 'HEAD', 'DELETE', 'TRACE', 'OPTIONS'].includes(method))
		return { method, path, token: 'good', headers: {} };
	const headers = { 'Content-Type': chance(0.05) ? pick(contentTypes) : 'application/json' };
	if (chance(0.05)) return { method, path, token: 'good', headers, raw: pick(raws) };
	const entries = fields
		.filter(() => !chance(0.2))
		.map((field) => `${JSON.stringify(field)}:${chance(0.25) ? pick(odd) : pick(good[field] ?? odd)}`);
	return { method, path, token: 'good', headers, raw: `{${entries.join(',')}}` };
}
