/** The DNS records of the sender domains, as receivers of the mail see them. */
import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { domainOf } from '../../api/address.js';
import { isLoopback } from '../../api/schema/url.js';
import { UsageError } from '../frame/errors.js';
import {
	type Answer,
	type Check,
	ok,
	online,
	problem,
	type Surroundings,
	skipped,
	type Verdict,
	warning,
} from './checks.js';
import type { DatabaseContents, OfContents, PublishedKey } from './inspection.js';

type Line = Surroundings['line'];

/** `dns.…`: a verdict for each domain. A query without an answer is skipped: it proves nothing about the domain. */
export function dnsChecks(of: OfContents, names: Names, around: Surroundings): Check[] {
	const { line } = around;
	const asked: OfContents = (judge) => of(async (contents) => online(around, () => judge(contents))());
	return [
		{
			name: 'dns.domain',
			run: asked(async (contents) => {
				const uses = await usesOf(contents);
				return each(uses.domains, async (domain) => [
					judgeExistence(domain, await names.txt(domain), { uses, line }),
				]);
			}),
		},
		{
			name: 'dns.dkim',
			run: asked(async ({ senders, dkimKeys }) => {
				const keys = await dkimKeys();
				const signed = keys.map(({ domain }) => domain);
				return each(domainsOf(await senders(), signed), async (domain) => {
					if (await isGone(domain, names)) return [unlooked(domain)];
					const own = keys.filter((key) => key.domain === domain);
					return lookAtKeys(domain, { own, names, line });
				});
			}),
		},
		{
			name: 'dns.spf',
			run: asked(async ({ senders, settings }) => {
				// Receivers look at the domain of the return path (RFC 7208 s.2.4).
				const { bounceAddress } = await settings();
				const paths = bounceAddress === null ? await senders() : [bounceAddress];
				return each(domainsOf(paths), async (domain) => [judgeSpf(domain, await names.txt(domain))]);
			}),
		},
		{
			name: 'dns.dmarc',
			run: asked(async ({ senders }) =>
				each(domainsOf(await senders()), (domain) => lookForPolicy(domain, names)),
			),
		},
		{
			name: 'dns.bounces',
			run: asked(async ({ settings }) => lookAtBounces((await settings()).bounceAddress, names)),
		},
		{
			name: 'dns.public-url',
			run: asked(async ({ settings }) => lookAtHost((await settings()).publicUrl, names)),
		},
	];
}

const mostDomains = 20;

async function each(
	domains: readonly string[],
	judge: (domain: string) => Promise<readonly Verdict[]>,
): Promise<Answer> {
	if (domains.length === 0) return skipped('there is no sender yet');
	const found = await Promise.all(domains.slice(0, mostDomains).map(judge));
	const left = domains.length - mostDomains;
	return left > 0 ? [...found.flat(), skipped(`${left} more domains were not asked about`)] : found.flat();
}

/** The parts of this database that name domains. */
interface Uses {
	senders: readonly string[];
	bounceAddress: string | null;
	keys: readonly PublishedKey[];
	domains: readonly string[];
}

async function usesOf({ senders, settings, dkimKeys }: DatabaseContents): Promise<Uses> {
	const { bounceAddress } = await settings();
	const [from, keys] = [await senders(), await dkimKeys()];
	const addresses = bounceAddress === null ? from : [bounceAddress, ...from];
	const signed = keys.map(({ domain }) => domain);
	return { senders: from, bounceAddress, keys, domains: domainsOf(addresses, signed) };
}

function judgeExistence(domain: string, looked: Looked, { uses, line }: { uses: Uses; line: Line }): Verdict {
	if (looked.kind === 'failed') return unasked(looked);
	if (!isNoName(looked)) return ok(`${domain} exists`);
	const isThere = (address: string) => domainOf(address) === domain;
	const senders = uses.senders.filter(isThere).slice(0, mostDomains);
	const returns = [uses.bounceAddress].filter((address) => address !== null).filter(isThere);
	const keys = uses.keys.filter((key) => key.domain === domain);
	const isUsed = senders.length + returns.length > 0;
	const harm = [
		isUsed ? 'receivers that check it refuse mail from there' : 'nothing is signed for it',
		...returns.map((address) => `bounces to ${address} are lost`),
	].join(', ');
	const steps = [
		'register it and publish its zone, or use another domain:',
		...(senders.length === 0 ? [] : [line('senders', 'add', 'ADDRESS')]),
		...senders.map((address) => line('senders', 'remove', address)),
		...returns.map(() => line('engine', 'settings', 'set', 'bounce_address', 'ADDRESS')),
		...keys.map(({ selector }) =>
			line('engine', 'dkim', 'remove', '--domain', domain, '--selector', selector),
		),
	];
	return problem(`${domain} does not exist (is it misspelled?): ${harm}`, steps.join('\n'));
}

async function lookAtKeys(
	domain: string,
	{ own, names, line }: { own: readonly PublishedKey[]; names: Names; line: Line },
): Promise<Verdict[]> {
	if (own.length === 0)
		return [
			warning(
				`mail of ${domain} is not signed here: large providers want a signature, unless the mail server adds it`,
				line('engine', 'dkim', 'add', '--domain', domain, '--selector', 's1'),
			),
		];
	return Promise.all(own.map(async (key) => judgeKey(key, await names.txt(key.name), line)));
}

/** Mail signed with a key that is not in the DNS is worse off than unsigned mail. */
function judgeKey(
	{ name, value }: Pick<PublishedKey, 'name' | 'value'>,
	looked: Looked,
	line: Line,
): Verdict {
	if (looked.kind === 'failed') return unasked(looked);
	const fix = line('engine', 'dkim', 'list', '-o', 'tsv', '--fields', 'dns_record');
	if (looked.kind === 'none')
		return problem(`mail is signed, and ${name} has no TXT record to verify it with: publish it`, fix);
	const published = looked.records.map((record) => tagOf(record, 'p'));
	if (published.includes(tagOf(value, 'p'))) return ok(`${name} is the key that signs`);
	if (published.every((key) => key === '')) return problem(`${name} says that the key is revoked`, fix);
	return problem(`${name} is another key than the one that signs: every signature fails`, fix);
}

/** A tag of `v=DKIM1; k=rsa; p=…` (RFC 6376 s.3.2), white space left out; undefined when it has none. */
function tagOf(record: string, tag: string): string | undefined {
	const tags = record.split(';').map((part) => part.replace(/\s/g, ''));
	return tags.find((part) => part.startsWith(`${tag}=`))?.slice(tag.length + 1);
}

function judgeSpf(domain: string, looked: Looked): Verdict {
	if (looked.kind === 'failed') return unasked(looked);
	if (isNoName(looked)) return unlooked(domain);
	const records = looked.kind === 'none' ? [] : looked.records.filter((text) => /^v=spf1( |$)/i.test(text));
	if (records.length > 1)
		return problem(
			`${domain} has ${records.length} SPF records: receivers take none of them`,
			'make one of them (RFC 7208 s.3.2)',
		);
	const [record] = records;
	if (record !== undefined) return ok(`${domain}: ${record}`);
	return warning(
		`${domain} has no SPF record: large providers refuse bulk mail without one`,
		`${domain}. IN TXT "v=spf1 mx ~all" ; with the servers that send for it`,
	);
}

/** No record of a domain mends it before the domain itself is there, as `dns.domain` says. */
async function isGone(domain: string, names: Names): Promise<boolean> {
	return isNoName(await names.txt(domain));
}

function isNoName(looked: Looked): boolean {
	return looked.kind === 'none' && !looked.isName;
}

function unlooked(domain: string): Verdict {
	return skipped(`${domain} does not exist`);
}

/** Of the domain itself, else of one above it (RFC 7489 s.6.6.3, RFC 9989). */
async function lookForPolicy(domain: string, names: Names): Promise<Verdict[]> {
	for (const one of [domain, ...parentsOf(domain)]) {
		const looked = await names.txt(`_dmarc.${one}`);
		if (looked.kind === 'failed') return [unasked(looked)];
		const record =
			looked.kind === 'none' ? undefined : looked.records.find((text) => /^v=DMARC1\b/i.test(text));
		if (record !== undefined) return [ok(`_dmarc.${one}: ${record}`)];
	}
	if (await isGone(domain, names)) return [unlooked(domain)];
	return [
		warning(
			`${domain} has no DMARC policy: large providers refuse bulk mail without one`,
			`_dmarc.${domain}. IN TXT "v=DMARC1; p=none"`,
		),
	];
}

async function lookAtBounces(address: string | null, names: Names): Promise<Verdict> {
	if (address === null) return skipped('no bounce address is set');
	const domain = domainOf(address);
	const mx = await names.mx(domain);
	if (mx.kind === 'failed') return unasked(mx);
	if (mx.kind === 'found') {
		const hosts = mx.records.filter((host) => host !== '');
		if (hosts.length > 0) return ok(`bounces to ${address} arrive at ${hosts.join(', ')}`);
		return problem(`${domain} says that it takes no mail: bounces to ${address} are lost`, mxLine(domain));
	}
	// Without MX records the host itself is meant (RFC 5321 s.5.1).
	const host = await names.addresses(domain);
	if (host.kind === 'failed') return unasked(host);
	if (host.kind === 'found') return ok(`bounces to ${address} arrive at ${domain} itself`);
	if (!host.isName) return unlooked(domain);
	return problem(
		`${domain} has neither an MX record nor an address: bounces to ${address} are lost`,
		mxLine(domain),
	);
}

function mxLine(domain: string): string {
	return `${domain}. IN MX 10 mail.${domain}. ; the host that takes them`;
}

async function lookAtHost(publicUrl: string | null, names: Names): Promise<Verdict> {
	if (publicUrl === null) return skipped('no public URL is set');
	const host = new URL(publicUrl).hostname;
	if (isLoopback(host) || /^\[|^[\d.]+$/.test(host)) return skipped('the public URL has no name to look up');
	const looked = await names.addresses(host);
	if (looked.kind === 'failed') return unasked(looked);
	if (looked.kind === 'found') return ok(`${host} is ${looked.records.join(', ')}`);
	return problem(
		`links in mails lead to ${host}, which does not exist`,
		`${host}. IN A 192.0.2.1 ; the address of the service`,
	);
}

function unasked({ why }: Extract<Looked, { kind: 'failed' }>): Verdict {
	return skipped(`DNS could not be asked: ${why}`);
}

/** Domains of addresses, each once. */
function domainsOf(addresses: readonly string[], more: readonly string[] = []): string[] {
	return [...new Set([...addresses.map(domainOf), ...more])].filter((domain) => domain !== '');
}

/** Domains above it, the nearest first; never a top-level domain. */
function parentsOf(domain: string): string[] {
	const labels = domain.split('.');
	return labels.slice(1, -1).map((_, at) => labels.slice(at + 1).join('.'));
}

/** `none`: there is no such record, and perhaps not even such a name (RFC 8020); `failed`: unknown. */
type Looked =
	| { kind: 'found'; records: readonly string[] }
	| { kind: 'none'; isName: boolean }
	| { kind: 'failed'; why: string };

/** Asks name servers. Never rejects. */
export interface Names {
	/** Texts of TXT records, their strings joined. */
	txt(name: string): Promise<Looked>;
	/** Hosts of MX records, the preferred first; an empty one means that the domain takes no mail (RFC 7505). */
	mx(name: string): Promise<Looked>;
	/** IPv4 and IPv6. */
	addresses(name: string): Promise<Looked>;
	/** Cancels queries without an answer. */
	close(): void;
}

/** `server`: the DNS server; undefined: those of this machine. Throws `UsageError` for an invalid address. */
export function createNames(server: string | undefined): Names {
	// Two tries within five seconds: a silent server must not hold up the report.
	const resolver = new Resolver({ timeout: 1_500, tries: 2 });
	if (server !== undefined) {
		if (!isServer(server))
			throw new UsageError(
				`--name-server: "${server}" is not an IP address, alone or with a port of 1 to 65535`,
				{
					hint: '--name-server 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53',
				},
			);
		resolver.setServers([server]);
	}
	return {
		txt: (name) => looked(async () => (await resolver.resolveTxt(name)).map((strings) => strings.join(''))),
		mx: (name) =>
			looked(async () => {
				const records = await resolver.resolveMx(name);
				return records.sort((a, b) => a.priority - b.priority).map(({ exchange }) => exchange);
			}),
		addresses: async (name) => {
			const found = [
				await looked(() => resolver.resolve4(name)),
				await looked(() => resolver.resolve6(name)),
			];
			const records = found.flatMap((one) => (one.kind === 'found' ? one.records : []));
			if (records.length > 0) return { kind: 'found', records };
			return (
				found.find(({ kind }) => kind === 'failed') ?? {
					kind: 'none',
					isName: found.some((one) => one.kind === 'none' && one.isName),
				}
			);
		},
		close: () => resolver.cancel(),
	};
}

/** Checked before Node.js does: port 0 ends the process there, and one above 65535 becomes another. */
function isServer(text: string): boolean {
	if (isIP(text) !== 0) return true;
	const parts = /^(?:\[(?<six>[^\]]*)\]|(?<four>[^:]*))(?::(?<port>\d+))?$/.exec(text)?.groups;
	if (parts === undefined) return false;
	const port = Number(parts['port'] ?? 53);
	return (isIP(parts['six'] ?? '') === 6 || isIP(parts['four'] ?? '') === 4) && port >= 1 && port <= 65_535;
}

async function looked(ask: () => Promise<string[]>): Promise<Looked> {
	try {
		const records = await ask();
		return records.length === 0 ? { kind: 'none', isName: true } : { kind: 'found', records };
	} catch (error) {
		const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
		if (code === 'ENOTFOUND' || code === 'ENODATA') return { kind: 'none', isName: code === 'ENODATA' };
		return { kind: 'failed', why: reasons[code] ?? code };
	}
}

const reasons: Readonly<Record<string, string>> = {
	ETIMEOUT: 'the name server does not answer',
	ECONNREFUSED: 'there is no name server',
	ECANCELLED: 'there was no time for it',
	ESERVFAIL: 'the name server failed',
	EREFUSED: 'the name server refuses to say',
};
