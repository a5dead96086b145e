/** Holds the validators to recorded answers of Django REST framework 3.14 to the same bodies. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { errorBody } from '../../src/api/errors.js';
import { fieldFields } from '../../src/api/fields.js';
import { senderFields, webhookFields } from '../../src/api/inputs.js';
import { listFields } from '../../src/api/lists.js';
import { sendFields } from '../../src/api/messages.js';
import type { Parsed, ParseMode } from '../../src/api/schema.js';
import { subscriberFields } from '../../src/api/subscribers.js';

interface Recorded {
	name: string;
	seed?: boolean;
	request: { method: string; path: string; body?: unknown };
	response: { status: number; body: unknown };
}

const file = join(import.meta.dirname, '../fixtures/drf-answers.json');
const modes: Record<string, ParseMode> = { POST: 'create', PUT: 'replace', PATCH: 'patch' };
const resources: [RegExp, { parse(body: unknown, mode: ParseMode): Parsed<unknown> }][] = [
	[/^\/sub\/lists\/(\d+\/)?$/, listFields],
	[/^\/sub\/lists\/\d+\/subscribers\/(\d+\/)?$/, subscriberFields],
	[/^\/sub\/fields\/(\d+\/)?$/, fieldFields],
	[/^\/webhooks\/(\d+\/)?$/, webhookFields],
	[/^\/senders\/(\d+\/)?$/, senderFields],
	[/^\/message\/send\/$/, sendFields],
];

// Their answer depends on what is stored: the validators do not see that.
const stored =
	/duplicate|address of another|variable of another|meta unknown key|not verified|template_unique_id (true|unknown|in braces|urn|upper case|integer)/;

/** Where we mean to differ from the witness, and how we answer instead. */
const pattern = { variable: ['This value does not match the required pattern.'] };
const needed = ['This field is required.'];
const noWebUrl = { url: ['Enter a valid URL.'] };
const deviations: Record<string, unknown> = {
	'create subscriber: meta nested value': {
		meta: { city: ['Use a string, a number, true, false or null.'] },
	},
	'create field: variable with a space': pattern,
	'create field: variable starting with a digit': pattern,
	'create field: variable integer': pattern,
	'create field: variable reserved': { variable: ['"email" is a reserved variable name.'] },
	'create notification: url bad port': noWebUrl,
	'create notification: url ftp': noWebUrl,
	'send: from display name': null,
	// Every bad field is named at once.
	'send: nothing': { from: needed, to: needed, subject: needed, text_body: needed, html_body: needed },
	'send: no body and a wrong address': {
		to: { 0: ['Enter a valid email address.'] },
		text_body: needed,
		html_body: needed,
	},
};

// The recording is ours, made in this shape.
const recorded = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Recorded[]) : [];

const cases = recorded.flatMap(({ name, request, response }) => {
	const mode = modes[request.method];
	const resource = resources.find(([path]) => path.test(request.path))?.[1];
	const isAnswered = [200, 201, 400].includes(response.status);
	if (stored.test(name)) return [];
	if (mode === undefined || resource === undefined || !isAnswered || request.body === undefined) return [];
	const parsed = resource.parse(request.body, mode);
	const ours = parsed.kind === 'valid' ? null : errorBody(parsed.errors);
	const theirs = response.status === 400 ? response.body : null;
	return [{ name, request, ours, expected: name in deviations ? deviations[name] : theirs }];
});

describe.skipIf(cases.length === 0)('the recorded answers', () => {
	test.each(cases)('$request.method $request.path: $name', ({ ours, expected }) => {
		expect(ours).toEqual(expected);
	});
});
