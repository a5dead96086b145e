import { describe, expect, it } from 'vitest';
import { readReport } from '../../../src/delivery/bounces/ingest.js';
import type { ReportedRecipient } from '../../../src/delivery/bounces/report.js';
import {
	type CorpusFile,
	corpusFiles,
	hasCorpus,
	hasOtherCorpus,
	namingFiles,
	type Recorded,
} from './corpus.js';

const files = corpusFiles();

/** Applies api-decisions 31 to the codes and to the reason that the corpus records for a mail. */
function isHard({ status, reply, reason }: Recorded): boolean {
	const codes = ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.2.1'];
	return !reply.startsWith('4') && (codes.includes(status) || isUnknown(reason));
}

function isUnknown(reason: string): boolean {
	return reason === 'userunknown' || reason === 'hostunknown';
}

const notBounces = ['feedback', 'vacation'];
const bounces = files.filter(({ recorded }) => recorded?.some(({ reason }) => !notBounces.includes(reason)));

function recipientsOf({ bytes }: CorpusFile): ReportedRecipient[] {
	const report = readReport(bytes);
	return report.kind === 'bounce' || report.kind === 'delivery_notice' ? report.recipients : [];
}

/** An address is plausible if the mail contains it and it is not just the mail's own recipient. */
function isPlausible({ bytes }: CorpusFile, { address }: ReportedRecipient): boolean {
	const text = bytes.toString('latin1');
	const to = /^To:\s*(.*)$/im.exec(text)?.[1] ?? '';
	const named = /^(?:Final-Recipient|X-Failed-Recipients|<).*$/gim;
	const isNamed = [...text.matchAll(named)].some(([line]) => line.includes(address));
	return text.includes(address) && (isNamed || !to.includes(address));
}

const pairs = bounces.flatMap((file) => {
	const found = recipientsOf(file);
	return (file.recorded ?? []).flatMap((recorded, at) => {
		const ours = found[at];
		return ours === undefined ? [] : [{ name: file.name, recorded, ours }];
	});
});

describe.skipIf(!hasCorpus)('reports of real systems (needs the corpora)', () => {
	it('are recognized with all their recipients in at least 98 % of cases', () => {
		const missed = bounces.filter((file) => {
			const found = recipientsOf(file);
			return found.length !== file.recorded?.length || !found.every((one) => isPlausible(file, one));
		});
		expect(bounces.length).toBeGreaterThan(250);
		expect(missed.length / bounces.length, missed.map(({ name }) => name).join()).toBeLessThanOrEqual(0.02);
	});

	it('are classified correctly in at least 90 % of cases; 85 % of unknown addresses are hard bounces', () => {
		const wrong = pairs.filter(({ recorded, ours }) => ours.hard !== isHard(recorded));
		expect(pairs.length).toBeGreaterThan(250);
		expect(wrong.length / pairs.length, wrong.map(({ name }) => name).join()).toBeLessThanOrEqual(0.1);
		const unknown = pairs.filter(({ recorded }) => isUnknown(recorded.reason));
		expect(unknown.filter(({ ours }) => ours.hard).length / unknown.length).toBeGreaterThanOrEqual(0.85);
	});

	it('are hard bounces only if the corpus or the diagnostic says that the address is invalid', () => {
		const wrong = pairs.filter(({ recorded, ours }) => ours.hard && !isHard(recorded));
		const said =
			/user unknown|unknown user|no such user|recipient not found|doesn't have an? \S+ account|does not exist/i;
		expect(wrong.filter(({ ours }) => !said.test(ours.diagnostic ?? '')).map(({ name }) => name)).toEqual([]);
	});

	it('are the only mails in the corpora that are recognized as bounces or delivery notices', () => {
		const others = files.filter((file) => !bounces.includes(file));
		const taken = others.filter((file) => recipientsOf(file).length > 0);
		expect(others.length).toBeGreaterThan(8);
		expect(taken.map(({ name }) => name)).toEqual([]);
	});

	it('are distinguished from feedback and automatic replies', () => {
		const kinds = (reason: string) =>
			files
				.filter(({ recorded }) => recorded?.[0]?.reason === reason)
				.map(({ bytes }) => readReport(bytes).kind);
		expect(kinds('vacation')).toEqual(['auto_reply', 'auto_reply']);
		const feedback = kinds('feedback');
		// One of the seven is an unsubscribe request from a mail program, not a report.
		expect(feedback.filter((kind) => kind === 'complaint' || kind === 'feedback')).toHaveLength(6);
		expect(feedback.filter((kind) => kind === 'not_a_report')).toHaveLength(1);
	});
});

function namesOf({ bytes }: { bytes: Buffer }, original: boolean): string[] {
	const report = readReport(bytes);
	if (report.kind !== 'bounce' && report.kind !== 'delivery_notice') return [];
	const names = report.recipients.map((one) => (original ? one.original_address : null) ?? one.address);
	return [...new Set(names.map((address) => address.toLowerCase()))].sort();
}

describe.skipIf(!hasOtherCorpus)('reports of older and rarer systems (needs the corpora)', () => {
	const others = namingFiles();

	it('yield the right recipients in at least 95 % of cases, and no recipient if none is named', () => {
		const wrong = others.filter((file) => {
			const expected = file.recipients.join();
			const found = [namesOf(file, false), namesOf(file, true)];
			const both = [...new Set(found.flat())].sort();
			return ![...found, both].some((names) => names.join() === expected);
		});
		expect(others.length).toBeGreaterThan(50);
		expect(wrong.length / others.length, wrong.map(({ name }) => name).join()).toBeLessThanOrEqual(0.05);
		expect(wrong.filter(({ recipients }) => recipients.length === 0)).toEqual([]);
	});
});
