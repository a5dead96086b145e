import { domainToASCII } from 'node:url';
import { refusalOf } from '../../frame/asking.js';
import { type CommandGroup, command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { DkimKey } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { isForPeople } from '../../frame/globals.js';
import { answers, type Columns, column } from '../../render/columns.js';

const columns: Columns<DkimKey> = [
	column('domain', 'DOMAIN'),
	column('selector', 'SELECTOR', { isName: true }),
	column('type', 'TYPE'),
	column('date_created', 'CREATED', { time: 'text' }),
	column('dns_name', 'RECORD', { isWhole: true }),
	column('dns_value', 'TXT', { isWhole: true }),
	column('dns_record', 'ZONE LINE', { wide: true, isWhole: true }),
];

const keyFields = '{"domain", "selector", "type", "date_created", "dns_name", "dns_value", "dns_record"}';
const domain = {
	kind: 'text',
	placeholder: 'DOMAIN',
	required: true,
	ask: 'Domain of the senders:',
	summary: 'sign mail whose From address has this domain',
} as const;
const selector = {
	kind: 'text',
	placeholder: 'NAME',
	required: true,
	ask: 'Selector:',
	summary: 'set the name of the key in the DNS, such as s2026',
} as const;

const refusing = (check: (text: string) => string) => async (_: CommandContext, typed: string) =>
	refusalOf(() => check(typed));

const list = command({
	name: 'list',
	summary: 'list the keys and their DNS records',
	description:
		'Publish each key as a TXT record with this name (RECORD) and value (TXT). `--fields dns_record` prints ' +
		'lines for a zone file.',
	columns,
	output: `an array of ${keyFields}`,
	examples: ['mailctl engine dkim list', 'mailctl engine dkim list -o tsv --fields dns_record'],
	run: async (cx) => {
		const { dkim } = await cx.local();
		await cx.out.rows(await dkim.list(), columns, { all: true });
	},
});

const add = command({
	name: 'add',
	summary: 'sign the mail of a domain',
	description:
		'Creates a key, or reads one from a file (PEM, RSA or Ed25519), and prints the TXT record to publish. ' +
		'From then on every key of the domain signs mail whose From address has exactly this domain. To rotate a ' +
		'key, add a new one, publish its record, and remove the old one after some days.',
	options: {
		domain: { ...domain, whyNot: refusing(checkDomain) },
		selector: { ...selector, whyNot: refusing(checkSelector) },
		keyFile: { kind: 'file', summary: 'read a private key (PEM, no passphrase) from a file' },
		type: { kind: 'choice', choices: ['rsa', 'ed25519'], summary: 'create a key of this type (rsa)' },
	},
	writes: true,
	columns,
	output: `${keyFields}; on a terminal, two lines with the name and the value of the record; with --quiet, only the line for a zone file`,
	exits: [5],
	examples: [
		'mailctl engine dkim add --domain example.com --selector s1',
		'mailctl engine dkim add --domain example.com --selector e1 --type ed25519',
		'mailctl engine dkim add --domain example.com --selector old --key-file dkim.pem',
	],
	run: async (cx, { options }) => {
		const { keyFile, type } = options;
		if (keyFile !== undefined && type !== undefined)
			throw new UsageError('use either --type or --key-file, not both');
		const name = { domain: checkDomain(options.domain), selector: checkSelector(options.selector) };
		const source = keyFile === undefined ? { type: type ?? 'rsa' } : { pem: await keyFile.text() };
		const { dkim } = await cx.local();
		const key = await dkim.add({ ...name, source });
		if (key === null)
			throw new CliError('conflict', exits.refused, `${name.domain} already has a key "${name.selector}"`);
		const what = `sign the mail of ${name.domain} with the key ${name.selector}`;
		if (cx.dryRun) return cx.wouldDo(what, { create: { ...name, type: key.type } });
		// Print name and value whole, because users copy them into a DNS provider's form. A table would cut them.
		if (cx.out.isBare) await cx.out.raw(`${key.dns_record}\n`);
		else if (isForPeople(cx)) await cx.out.raw(`${key.dns_name}\n${key.dns_value}\n`);
		else await cx.out.record(key, columns);
		await cx.note(`mail from ${key.domain} is now signed: publish this TXT record`);
	},
});

const remove = command({
	name: 'remove',
	summary: 'stop signing with a key and erase it',
	options: { domain: { ...domain, of: 'signed domain' }, selector: { ...selector, of: 'DKIM key' } },
	writes: true,
	severity: 'mild',
	...answers({ removed: '[{"domain", "selector"}]' }),
	exits: [3],
	examples: ['mailctl engine dkim remove --domain example.com --selector s1 --yes'],
	run: async (cx, { options }) => {
		const name = { domain: checkDomain(options.domain), selector: checkSelector(options.selector) };
		const { dkim } = await cx.local();
		const own = (await dkim.list()).filter(({ domain }) => domain === name.domain);
		if (!own.some(({ selector }) => selector === name.selector))
			throw new CliError('not_found', exits.notFound, `${name.domain} has no key "${name.selector}"`, {
				hint: mailctl('engine', 'dkim', 'list'),
			});
		const effect =
			own.length === 1 ? `mail from ${name.domain} is no longer signed` : 'other keys still sign';
		if (cx.dryRun) return cx.wouldDo(`remove the key ${name.selector}: ${effect}`, { delete: [name] });
		const what = `the key ${name.selector} of ${name.domain}: ${effect}`;
		await cx.confirm({ kind: 'mild', what: `remove ${what}` });
		await dkim.remove(name);
		await cx.out.document({ removed: [name] }, `removed ${what}`);
	},
});

export const dkim: CommandGroup = {
	name: 'dkim',
	summary: 'manage the keys that sign mail',
	examples: ['mailctl engine dkim add --domain example.com --selector s1', 'mailctl engine dkim list'],
	commands: [add, list, remove],
};

const label = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;

function checkDomain(text: string): string {
	const name = text.trim();
	// domainToASCII would silently drop text after a slash, and read %61 as "a".
	const domain = /[\s/\\?#%]/.test(name) ? '' : domainToASCII(name.replace(/\.$/, '')).toLowerCase();
	const labels = domain.split('.');
	if (labels.length > 1 && domain.length <= 253 && labels.every((one) => label.test(one))) return domain;
	throw new UsageError(`--domain: "${text}" is not a domain`, { hint: 'such as example.com' });
}

function checkSelector(text: string): string {
	const selector = text.trim().toLowerCase();
	if (selector.length <= 120 && selector.split('.').every((one) => label.test(one))) return selector;
	const hint = 'letters, digits and hyphens, such as s2026';
	throw new UsageError(`--selector: "${text}" is not a selector`, { hint });
}
