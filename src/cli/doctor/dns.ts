import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { domainOf } from '../../api/address.js';
import { codeOf } from '../../api/errors.js';
import { isLoopback } from '../../api/schema/url.js';
import type { Contents, OfContents } from '../connect/inspect.js';
import { UsageError } from '../frame/errors.js';
import {
	type Answer,
	type Checks,
	ok,
	problem,
	type Surroundings,
	skipped,
	type Verdict,
	warning,
} from './checks.js';

class Unanswered extends Error {}

export type Names = ReturnType<typeof createNames>;

/** `server`: the DNS server; undefined: those of this machine. Throws `UsageError` for an invalid address. */
export function createNames(server: string | undefined) {
	// Two tries within five seconds: a silent server must not hold up the report.
	const resolver = new Resolver({ timeout: 1_500, tries: 2 });
	if (server !== undefined) {
		if (!isServer(server))
			throw new UsageError(
				`--name-server: "${server}" is not an IP address, alone or with a port of 1 to 65535`,
				{ hint: '--name-server 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53' },
			);
		resolver.setServers([server]);
	}
	return {
		txt: (name: string) =>
			asked(async () => (await resolver.resolveTxt(name)).map((strings) => strings.join(''))),
		/** Hosts, the preferred first; an empty one means that the domain accepts none (RFC 7505). */
		mx: (name: string) =>
			asked(async () => {
				const records = await resolver.resolveMx(name);
				return records.sort((a, b) => a.priority - b.priority).map(({ exchange }) => exchange);
			}),
		addresses: async (name: string) => {
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
		const code = codeOf(error) || String(error);
		if (code === 'ENODATA') return [];
		if (code === 'ENOTFOUND') return null;
		throw new Unanswered(`DNS did not answer: ${code}`);
	}
}

export function dnsChecks(of: OfContents, names: Names, { line, online }: Surroundings): Checks {
	const check = (
		find: (contents: Contents) => Promise<readonly string[]>,
		judge: (domain: string, contents: Contents) => Promise<Answer>,
		none = 'no sender is known',
	) =>
		of((contents) =>
			online(async () => {
				const ones = await find(contents);
				return ones.length === 0 ? skipped(none) : each(ones, (one) => judge(one, contents));
			})(),
		);
	/** Judges a domain that exists: until it does, no record helps. */
	const existing = async (domain: string, judge: (texts: readonly string[]) => Answer | Promise<Answer>) => {
		const texts = await names.txt(domain);
		return texts === null ? skipped(`${domain} does not exist`) : judge(texts);
	};
	const setting = (name: 'bounceAddress' | 'publicUrl') => async (contents: Contents) => {
		const value = (await contents.settings())[name];
		return value === null ? [] : [value];
	};
	const bounceAddress = setting('bounceAddress');
	const senderDomains = async ({ senders }: Contents) => domainsOf(await senders());
	const signedDomains = async (contents: Contents) => [
		...(await senderDomains(contents)),
		...(await contents.dkimKeys()).map(({ domain }) => domain),
	];
	return {
		'dns.domain': check(
			async (contents) => [...domainsOf(await bounceAddress(contents)), ...(await signedDomains(contents))],
			async (domain) =>
				(await names.txt(domain)) === null
					? problem(
							`${domain} does not exist (is it misspelled?): receivers that check it refuse mail from there`,
							'register it and publish its zone, or use another domain',
						)
					: ok(`${domain} exists`),
		),
		'dns.dkim': check(signedDomains, async (domain, { dkimKeys }) => {
			const own = (await dkimKeys()).filter((key) => key.domain === domain);
			const publish = line('engine', 'dkim', 'list', '-o', 'tsv', '--fields', 'dns_record');
			return existing(domain, () =>
				own.length > 0
					? Promise.all(own.map(async (key) => judgeKey(key, (await names.txt(key.name)) ?? [], publish)))
					: warning(
							`mail of ${domain} is not signed here: large providers want a signature, unless the mail server adds it`,
							line('engine', 'dkim', 'add', '--domain', domain, '--selector', 's1'),
						),
			);
		}),
		// Receivers look at the domain of the return path (RFC 7208 s.2.4).
		'dns.spf': check(
			async (contents) => {
				const [bounces] = await bounceAddress(contents);
				return bounces === undefined ? senderDomains(contents) : domainsOf([bounces]);
			},
			(domain) => existing(domain, (texts) => judgeSpf(domain, texts)),
		),
		'dns.dmarc': check(senderDomains, async (domain) => {
			// The record of the domain itself, else of one above it (RFC 7489 s.6.6.3, RFC 9989).
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
		}),
		'dns.bounces': check(
			bounceAddress,
			(address) => judgeBounces(address, names),
			'no bounce address is set',
		),
		'dns.public-url': check(
			setting('publicUrl'),
			(url) => judgeHost(new URL(url).hostname, names),
			'no public URL is set',
		),
	};
}

const mostDomains = 20;

async function each(all: readonly string[], judge: (one: string) => Promise<Answer>): Promise<Verdict[]> {
	const ones = [...new Set(all)];
	const found = await Promise.all(
		ones.slice(0, mostDomains).map((one) =>
			judge(one).catch((error: unknown) => {
				if (error instanceof Unanswered) return skipped(error.message);
				throw error;
			}),
		),
	);
	const left = ones.length - mostDomains;
	return [...found.flat(), ...(left > 0 ? [skipped(`${left} more domains were not asked about`)] : [])];
}

function judgeKey(
	{ name, value }: { name: string; value: string },
	records: readonly string[],
	fix: string,
): Verdict {
	if (records.length === 0)
		return problem(`mail is signed, and ${name} has no TXT record to verify it with: publish it`, fix);
	const published = records.map(keyIn);
	if (published.includes(keyIn(value))) return ok(`${name} is the key that signs`);
	if (published.every((key) => key === '')) return problem(`${name} says that the key is revoked`, fix);
	return problem(`${name} is another key than the one that signs: every signature fails`, fix);
}

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
	// Without MX records the host itself is meant (RFC 5321 s.5.1).
	const host = mx.length > 0 ? [] : await names.addresses(domain);
	if (host === null) return skipped(`${domain} does not exist`);
	if (host.length > 0) return ok(`bounces to ${address} arrive at ${domain} itself`);
	const why = mx.length > 0 ? 'says that it accepts no mail' : 'has neither an MX record nor an address';
	return problem(`${domain} ${why}: bounces to ${address} are lost`, fix);
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

function parentsOf(domain: string): string[] {
	const labels = domain.split('.');
	return labels.slice(1, -1).map((_, at) => labels.slice(at + 1).join('.'));
}
