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

/** A query without an answer: it proves nothing about the domain. */
class Unanswered extends Error {}

/** Records of a name; null: there is no such name (RFC 8020). They throw `Unanswered`. */
export interface Names {
	txt(name: string): Promise<readonly string[] | null>;
	/** Hosts of MX records, the preferred first; an empty one means that the domain takes no mail (RFC 7505). */
	mx(name: string): Promise<readonly string[] | null>;
	/** IPv4 and IPv6. */
	addresses(name: string): Promise<readonly string[] | null>;
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
		txt: (name) => asked(async () => (await resolver.resolveTxt(name)).map((strings) => strings.join(''))),
		mx: (name) =>
			asked(async () => {
				const records = await resolver.resolveMx(name);
				return records.sort((a, b) => a.priority - b.priority).map(({ exchange }) => exchange);
			}),
		addresses: async (name) => {
			const four = await asked(() => resolver.resolve4(name));
			const six = await asked(() => resolver.resolve6(name));
			return four === null && six === null ? null : [...(four ?? []), ...(six ?? [])];
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

async function asked(ask: () => Promise<string[]>): Promise<string[] | null> {
	try {
		return await ask();
	} catch (error) {
		const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
		if (code === 'ENODATA') return [];
		if (code === 'ENOTFOUND') return null;
		throw new Unanswered(`DNS could not be asked: ${reasons[code] ?? code}`);
	}
}

const reasons: Readonly<Record<string, string>> = {
	ETIMEOUT: 'the name server does not answer',
	ECONNREFUSED: 'there is no name server',
	ECANCELLED: 'there was no time for it',
	ESERVFAIL: 'the name server failed',
	EREFUSED: 'the name server refuses to say',
};

/** `dns.…`: a verdict for each domain. */
export function dnsChecks(of: OfContents, names: Names, around: Surroundings): Check[] {
	const { line } = around;
	const check = (
		name: `dns.${string}`,
		find: (contents: DatabaseContents) => Promise<readonly string[]>,
		judge: (domain: string, contents: DatabaseContents) => Promise<Answer>,
		none = 'there is no sender yet',
	): Check => ({
		name,
		run: of((contents) =>
			online(around, async () => {
				const ones = await find(contents);
				return ones.length === 0 ? skipped(none) : each(ones, (one) => judge(one, contents));
			})(),
		),
	});
	/** A verdict on a domain that exists: nothing else mends it before it does. */
	const existing = async (domain: string, judge: (texts: readonly string[]) => Verdict): Promise<Verdict> => {
		const texts = await names.txt(domain);
		return texts === null ? skipped(`${domain} does not exist`) : judge(texts);
	};
	const setting = (name: 'bounceAddress' | 'publicUrl') => async (contents: DatabaseContents) => {
		const value = (await contents.settings())[name];
		return value === null ? [] : [value];
	};
	const returnPaths = async (contents: DatabaseContents) => {
		const [bounces] = await setting('bounceAddress')(contents);
		return bounces === undefined ? await contents.senders() : [bounces];
	};
	const keyDomains = async ({ dkimKeys }: DatabaseContents) => (await dkimKeys()).map(({ domain }) => domain);
	return [
		check(
			'dns.domain',
			async (contents) => [
				...domainsOf(await setting('bounceAddress')(contents)),
				...domainsOf(await contents.senders()),
				...(await keyDomains(contents)),
			],
			async (domain) =>
				(await names.txt(domain)) === null
					? problem(
							`${domain} does not exist (is it misspelled?): receivers that check it refuse mail from there`,
							'register it and publish its zone, or use another domain',
						)
					: ok(`${domain} exists`),
		),
		check(
			'dns.dkim',
			async (contents) => [...domainsOf(await contents.senders()), ...(await keyDomains(contents))],
			async (domain, { dkimKeys }) => {
				const own = (await dkimKeys()).filter((key) => key.domain === domain);
				if (own.length > 0 && (await names.txt(domain)) !== null)
					return Promise.all(
						own.map(async (key) => judgeKey(key, (await names.txt(key.name)) ?? [], around)),
					);
				return existing(domain, () =>
					warning(
						`mail of ${domain} is not signed here: large providers want a signature, unless the mail server adds it`,
						line('engine', 'dkim', 'add', '--domain', domain, '--selector', 's1'),
					),
				);
			},
		),
		// Receivers look at the domain of the return path (RFC 7208 s.2.4).
		check(
			'dns.spf',
			async (contents) => domainsOf(await returnPaths(contents)),
			(domain) => existing(domain, (texts) => judgeSpf(domain, texts)),
		),
		check(
			'dns.dmarc',
			async ({ senders }) => domainsOf(await senders()),
			async (domain) => {
				// That of the domain itself, else of one above it (RFC 7489 s.6.6.3, RFC 9989).
				for (const one of [domain, ...parentsOf(domain)]) {
					const record = (await names.txt(`_dmarc.${one}`))?.find((text) => /^v=DMARC1\b/i.test(text));
					if (record !== undefined) return ok(`_dmarc.${one}: ${record}`);
				}
				return existing(domain, () =>
					warning(
						`${domain} has no DMARC policy: large providers refuse bulk mail without one`,
						`_dmarc.${domain}. IN TXT "v=DMARC1; p=none"`,
					),
				);
			},
		),
		check(
			'dns.bounces',
			setting('bounceAddress'),
			(address) => judgeBounces(address, names),
			'no bounce address is set',
		),
		check(
			'dns.public-url',
			setting('publicUrl'),
			(url) => judgeHost(new URL(url).hostname, names),
			'no public URL is set',
		),
	];
}

const mostDomains = 20;

async function each(
	all: readonly string[],
	judge: (one: string) => Promise<Answer>,
): Promise<readonly Verdict[]> {
	const ones = [...new Set(all)];
	const found = await Promise.all(
		ones.slice(0, mostDomains).map(async (one) =>
			judge(one).catch((error: unknown) => {
				if (error instanceof Unanswered) return skipped(error.message);
				throw error;
			}),
		),
	);
	const left = ones.length - mostDomains;
	return left > 0 ? [...found.flat(), skipped(`${left} more domains were not asked about`)] : found.flat();
}

/** Mail signed with a key that is not in the DNS is worse off than unsigned mail. */
function judgeKey(
	{ name, value }: PublishedKey,
	records: readonly string[],
	{ line }: Surroundings,
): Verdict {
	const fix = line('engine', 'dkim', 'list', '-o', 'tsv', '--fields', 'dns_record');
	if (records.length === 0)
		return problem(`mail is signed, and ${name} has no TXT record to verify it with: publish it`, fix);
	const published = records.map(keyIn);
	if (published.includes(keyIn(value))) return ok(`${name} is the key that signs`);
	if (published.every((key) => key === '')) return problem(`${name} says that the key is revoked`, fix);
	return problem(`${name} is another key than the one that signs: every signature fails`, fix);
}

/** The tag `p` of `v=DKIM1; k=rsa; p=…` (RFC 6376 s.3.2), white space left out; undefined when it has none. */
function keyIn(record: string): string | undefined {
	const tags = record.split(';').map((part) => part.replace(/\s/g, ''));
	return tags.find((part) => part.startsWith('p='))?.slice(2);
}

function judgeSpf(domain: string, texts: readonly string[]): Verdict {
	const [record, ...others] = texts.filter((text) => /^v=spf1( |$)/i.test(text));
	if (others.length > 0)
		return problem(
			`${domain} has ${others.length + 1} SPF records: receivers take none of them`,
			'make one of them (RFC 7208 s.3.2)',
		);
	if (record !== undefined) return ok(`${domain}: ${record}`);
	return warning(
		`${domain} has no SPF record: large providers refuse bulk mail without one`,
		`${domain}. IN TXT "v=spf1 mx ~all" ; with the servers that send for it`,
	);
}

async function judgeBounces(address: string, names: Names): Promise<Verdict> {
	const domain = domainOf(address);
	const fix = `${domain}. IN MX 10 mail.${domain}. ; the host that takes them`;
	const mx = (await names.mx(domain)) ?? [];
	const hosts = mx.filter((host) => host !== '');
	if (hosts.length > 0) return ok(`bounces to ${address} arrive at ${hosts.join(', ')}`);
	if (mx.length > 0)
		return problem(`${domain} says that it takes no mail: bounces to ${address} are lost`, fix);
	// Without MX records the host itself is meant (RFC 5321 s.5.1).
	const host = await names.addresses(domain);
	if (host === null) return skipped(`${domain} does not exist`);
	return host.length > 0
		? ok(`bounces to ${address} arrive at ${domain} itself`)
		: problem(`${domain} has neither an MX record nor an address: bounces to ${address} are lost`, fix);
}

async function judgeHost(host: string, names: Names): Promise<Verdict> {
	if (isLoopback(host) || /^\[|^[\d.]+$/.test(host)) return skipped('the public URL has no name to look up');
	const found = (await names.addresses(host)) ?? [];
	if (found.length > 0) return ok(`${host} is ${found.join(', ')}`);
	return problem(
		`links in mails lead to ${host}, which does not exist`,
		`${host}. IN A 192.0.2.1 ; the address of the service`,
	);
}

function domainsOf(addresses: readonly string[]): string[] {
	return addresses.map(domainOf).filter((domain) => domain !== '');
}

/** Domains above it, the nearest first; never a top-level domain. */
function parentsOf(domain: string): string[] {
	const labels = domain.split('.');
	return labels.slice(1, -1).map((_, at) => labels.slice(at + 1).join('.'));
}
