/**
 * Reports of about sixty mail systems, with the results of another bounce parser; empty if the corpora are missing.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const corpora = process.env['MAILCTL_CORPORA'] ?? '../shared/corpora';
const folder = join(corpora, 'bounces');
const otherFolder = join(corpora, 'bounces-recipients');

export const hasCorpus = existsSync(join(folder, 'truth.json'));

export const hasOtherCorpus = existsSync(join(otherFolder, 'truth.json'));

export interface Recorded {
	status: string;
	reply: string;
	reason: string;
	hard: boolean;
}

export interface CorpusFile {
	name: string;
	bytes: Buffer;
	/** Null for mails that the other parser does not list as bounces. */
	recorded: readonly Recorded[] | null;
}

export function corpusFiles(): CorpusFile[] {
	if (!hasCorpus) return [];
	const truth: Record<string, Recorded[]> = JSON.parse(readFileSync(join(folder, 'truth.json'), 'utf8'));
	return readdirSync(folder)
		.filter((name) => name.endsWith('.eml'))
		.map((name) => ({ name, bytes: readFileSync(join(folder, name)), recorded: truth[name] ?? null }));
}

export interface NamingFile {
	name: string;
	bytes: Buffer;
	recipients: readonly string[];
}

export function namingFiles(): NamingFile[] {
	if (!hasOtherCorpus) return [];
	const text = readFileSync(join(otherFolder, 'truth.json'), 'utf8');
	const truth: Record<string, { recipients: string[] }> = JSON.parse(text);
	return Object.entries(truth).map(([name, { recipients }]) => ({
		name,
		bytes: readFileSync(join(otherFolder, name)),
		recipients: [...new Set(recipients.map((address) => address.toLowerCase()))].sort(),
	}));
}
