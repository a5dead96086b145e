/** Requests of the wire golden, as they are written to the socket. */

export interface WireRequest {
	line: string;
	token?: 'admin' | 'send' | 'wrong' | null;
	headers?: readonly string[];
	body?: string;
	show?: 'names' | 'head';
}

const json = ['Content-Type: application/json'];
const form = ['Content-Type: application/x-www-form-urlencoded'];
const mail = { from: 'news@example.com', to: ['kim@example.com'], subject: 'S', text_body: 'T' };

export const wireRequests: readonly WireRequest[] = [
	{ line: 'GET /' },
	{ line: 'GET /', token: null },
	{ line: 'GET /healthz', token: null },
	{ line: 'GET /readyz', token: null },
	{ line: 'HEAD /readyz', token: null },
	{ line: 'GET /metrics', show: 'names' },
	{ line: 'GET /metrics', token: null },
	{ line: 'GET /openapi.json', token: null, show: 'head' },
	{ line: 'GET /favicon.ico', token: null },
	{ line: 'GET /nowhere/' },
	{ line: 'GET /sub/lists/' },
	{ line: 'GET /sub/lists/?page_size=1' },
	{ line: 'GET /sub/lists' },
	{ line: 'HEAD /sub/lists/' },
	{ line: 'OPTIONS /sub/lists/' },
	{ line: 'OPTIONS /nowhere/', token: null },
	{ line: 'GET /sub/lists/', token: null },
	{ line: 'GET /sub/lists/', token: 'wrong' },
	{ line: 'GET /sub/lists/', token: 'send' },
	{ line: 'GET /sub/lists/?page=99' },
	{ line: 'GET /sub/lists/99/' },
	{ line: 'DELETE /sub/lists/' },
	{ line: 'BREW /sub/lists/' },
	{ line: 'POST /sub/lists/', headers: json, body: JSON.stringify({ name: 'Wire', email_reason: 'r' }) },
	{ line: 'POST /sub/lists/', headers: json, body: '{"name": ""}' },
	{ line: 'POST /sub/lists/', headers: json, body: '{"name": ' },
	{ line: 'POST /sub/lists/', headers: ['Content-Type: text/plain'], body: 'name=Wire' },
	{ line: 'POST /sub/lists/', headers: [...json, 'Content-Encoding: gzip'], body: 'x' },
	{ line: 'POST /sub/lists/', headers: [...json, 'Content-Length: 99999999'] },
	{
		line: 'POST /sub/lists/',
		headers: [...json, 'Transfer-Encoding: chunked'],
		body: '2\r\n{}\r\n0\r\n\r\n',
	},
	{ line: 'PATCH /sub/lists/1/', headers: json, body: '{"name": "Patched"}' },
	{ line: 'DELETE /sub/lists/2/' },
	{ line: 'POST /message/send/', headers: json, body: JSON.stringify(mail), token: 'send' },
	{ line: 'POST /message/send/', headers: json, body: JSON.stringify({ ...mail, from: 'a@b.c' }) },
	{ line: 'POST /message/send/', headers: [...json, 'Idempotency-Key: k'], body: JSON.stringify(mail) },
	{ line: 'POST /message/send/', headers: [...json, 'Idempotency-Key: k'], body: JSON.stringify(mail) },
	{
		line: 'POST /message/send/',
		headers: [...json, 'Idempotency-Key: k'],
		body: JSON.stringify({ ...mail, subject: 'Other' }),
	},
	{ line: 'GET /webhooks/1/run_test/' },
	{ line: 'GET /stat/reports/events-report/?event_types=NOTHING' },
	{ line: 'GET /ext/messages/33333333-3333-4333-8333-333333333333/' },
	{ line: `GET /${'x'.repeat(9_000)}` },
	{ line: 'GET /sub/lists/', headers: [`X-Long: ${'x'.repeat(17_000)}`] },
	{ line: 'GET {open}', token: null },
	{ line: 'HEAD {open}', token: null },
	{ line: 'GET {click}', token: null },
	{ line: 'GET {view}', token: null },
	{ line: 'GET {leave}', token: null },
	{ line: 'GET /u/nothing', token: null },
	{ line: 'GET /u/nothing', headers: ['Accept-Language: ja, de;q=0.5'], token: null },
	{ line: 'GET /o/nothing', token: null },
	{ line: 'GET /c/nothing', token: null },
	{ line: 'PUT {leave}', token: null },
	{ line: 'POST {leave}', token: null, headers: form, body: 'scope=list' },
	{ line: 'POST {leave}', token: null, headers: form, body: 'List-Unsubscribe=One-Click' },
];
