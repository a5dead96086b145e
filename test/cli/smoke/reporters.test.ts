import { describe, expect, it } from 'vitest';
import { paint } from '../../../src/cli/render/terminal.js';
import type { CheckResult, SmokeReport } from '../../../src/cli/smoke/model.js';
import { reporters } from '../../../src/cli/smoke/report.js';
import { isInstalled, runProgram } from '../../support/run-program.js';

const hostile = 'says <b>&"\'\u001b[31m # red \\ \u202e ]]> \ud800\u0000 end';

function check(id: string, more: Partial<CheckResult> = {}): CheckResult {
	return {
		id,
		title: `title of ${id}`,
		group: 'lists',
		outcome: 'pass',
		detail: null,
		duration_ms: 12,
		...more,
	};
}

const report: SmokeReport = {
	run: '20261121T081237-3fa9c2',
	target: 'https://mail.example.com',
	started: '2026-11-21T08:12:37.000Z',
	duration_ms: 1234,
	checks: [
		check('lists.page', { detail: '2 of 2' }),
		check('lists.get', { outcome: 'deviation' }),
		check('lists.create', { outcome: 'fail', detail: `first\n${hostile}` }),
		check('lists.delete', { outcome: 'skip', detail: 'lists.create made nothing # at all' }),
	],
	deviations: [{ check: 'lists.get', text: hostile }],
	leftovers: [{ kind: 'list', id: 7, name: 'mailctl-smoke-20261121T081237-3fa9c2', why: hostile }],
	counts: { passed: 2, failed: 1, skipped: 1, deviations: 1, leftovers: 1 },
};

const plain = await paint(false);
const rendered = (name: keyof typeof reporters, unicode = true, columns = Number.POSITIVE_INFINITY) =>
	reporters[name](report, { unicode, paint: plain, columns });

const cleaned = String.raw`says <b>&"'\x1b[31m # red \ \u202e ]]> \ud800\x00 end`;

describe('the text report of smoke', () => {
	it('breaks no word on a terminal, and indents details under the titles', () => {
		const lines = rendered('text', true, 60).split('\n');
		expect(lines.slice(6, 9)).toEqual([
			'– lists.create made nothing # at all: lists.delete',
			'',
			'deviations from the contract',
		]);
	});

	it('lists and counts checks, deviations and leftovers', () => {
		expect(rendered('text').split('\n')).toEqual([
			'mailctl smoke https://mail.example.com, run 20261121T081237-3fa9c2',
			'✓ lists.page    title of lists.page (2 of 2)',
			'~ lists.get     title of lists.get',
			'✗ lists.create  title of lists.create',
			'    first',
			`    ${cleaned}`,
			'– lists.create made nothing # at all: lists.delete',
			'',
			'deviations from the contract',
			`    lists.get: ${cleaned}`,
			'',
			'left behind',
			`    list 7 "mailctl-smoke-20261121T081237-3fa9c2": ${cleaned}`,
			'',
			'4 checks: 2 passed, 1 failed, 1 skipped; 1 deviation; 1 left behind; 1.2 s',
			'',
		]);
	});

	it('uses ASCII on a limited terminal', () => {
		expect(rendered('text', false)).toMatch(/^[\x20-\x7e\n]*$/);
		expect(rendered('text', false)).toContain('\nFAIL lists.create  title of lists.create\n');
	});
});

it('the TAP report of smoke contains a plan, skipped checks, and details in YAML', () => {
	const quoted = JSON.stringify(cleaned);
	expect(rendered('tap').split('\n').slice(0, 20)).toEqual([
		'TAP version 14',
		'1..4',
		'ok 1 - lists.page: title of lists.page',
		'  ---',
		'  duration_ms: 12',
		'  ...',
		'ok 2 - lists.get: title of lists.get',
		'  ---',
		'  deviations:',
		`    - ${quoted}`,
		'  duration_ms: 12',
		'  ...',
		'not ok 3 - lists.create: title of lists.create',
		'  ---',
		`  message: ${JSON.stringify(`first; ${cleaned}`)}`,
		'  severity: fail',
		'  duration_ms: 12',
		'  ...',
		String.raw`ok 4 - lists.delete: title of lists.delete # SKIP lists.create made nothing \# at all`,
		`# left behind: list 7 "mailctl-smoke-20261121T081237-3fa9c2": ${cleaned}`,
	]);
});

const hasPython = isInstalled('python3');

describe.skipIf(!hasPython)('the JUnit report of smoke', () => {
	it('is XML that Python parses, whatever the service answered', () => {
		const program = `
import json, sys, xml.etree.ElementTree as tree
suite = tree.fromstring(sys.stdin.buffer.read())
print(json.dumps({
    "tag": suite.tag,
    "attributes": suite.attrib,
    "cases": [[c.get("classname"), c.get("name"), c.get("time"), [[x.tag, x.get("message"), x.text] for x in c]] for c in suite.iter("testcase")],
}))`;
		const { stdout, stderr } = runProgram('python3', ['-c', program], { input: rendered('junit') });
		expect(stderr.toString()).toBe('');
		const readable = 'says <b>&"\'\\x1b[31m # red \\ \\u202e ]]> \\ud800\\x00 end';
		expect(JSON.parse(stdout.toString())).toEqual({
			tag: 'testsuite',
			attributes: {
				name: 'mailctl smoke',
				tests: '4',
				failures: '1',
				errors: '0',
				skipped: '1',
				time: '1.234',
				timestamp: '2026-11-21T08:12:37.000',
			},
			cases: [
				['mailctl.smoke.lists', 'lists.page: title of lists.page', '0.012', []],
				[
					'mailctl.smoke.lists',
					'lists.get: title of lists.get',
					'0.012',
					[['system-out', null, `deviation: ${readable}`]],
				],
				[
					'mailctl.smoke.lists',
					'lists.create: title of lists.create',
					'0.012',
					[['failure', `first\n${readable}`, `first\n${readable}`]],
				],
				[
					'mailctl.smoke.lists',
					'lists.delete: title of lists.delete',
					'0.012',
					[['skipped', 'lists.create made nothing # at all', null]],
				],
			],
		});
	});
});

describe('the JSON report of smoke', () => {
	it('contains the whole report unchanged', () => {
		expect(JSON.parse(rendered('json'))).toEqual(report);
	});
});
