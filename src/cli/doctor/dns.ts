import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { domainOf } from '../../api/address.js';
import { codeOf, whyUnreachable } from '../../api/errors.js';
import { UsageError } from '../frame/errors.js';
import type { Answer, Checks, Surroundings, Verdict } from './checks.js';
import { firstError, ok, problem, Skip, skipped, warning } from './checks.js';
import type { Database } from './sending.js';

type Names = ReturnType<typeof createNames>;

export function createNames(server: string | undefined) {
	// The second try waits twice as long as the first. One silent server delays the report by less than 5 s.
	const resolver = new Resolver({ timeout: 1_500, tries: 2 });
	if (server !== undefined) {
		if (!isServer(server))
			throw new UsageError(
				`--name-server: "${server}" is not an IP address, with or without a port from 1 to 65535`,
				{ hint: '--name-server 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53' },
			);
		resolver.setServers([server]);
	}
	const ask = async <T>(answer: Promise<T[]>): Promise<T[] | null> => {
		try {
			return await answer;
		} catch (error) {
			const code = codeOf(error);
			if (code === 'ENODATA') return [];
			if (code === 'ENOTFOUND') return null;
			throw new Skip(`DNS did not answer: ${code || firstError(error)}`);
		}
	};
	return {
		txt: async (name: string) =>
			(await ask(resolver.resolveTxt(name)))?.map((strings) => strings.join('')) ?? null,
		/** Returns mail hosts, the preferred host first. An empty name means that the domain accepts no mail (RFC 7505). */
		mx: async (name: string) => {
			const records = (await ask(resolver.resolveMx(name))) ?? [];
			return records.sort((a, b) => a.priority - b.priority).map(({ exchange }) => exchange);
		},
		addresses: async (name: string) => {
			const four = await ask(resolver.resolve4(name));
			const six = await ask(resolver.resolve6(name));
			return four === null && six === null ? null : [...(four ?? []), ...(six ?? [])];
		},
		close: () => resolver.cancel(),
	};
}

/** Checks the port, because Node.js aborts the process for port 0 and takes ports above 65535 modulo 65536. */
function isServer(text: string): boolean {
	if (isIP(text) !== 0) return true;
	const parts = /^(?:\[(?<six>[^\]]*)\]|(?<four>[^:]*))(?::(?<port>\d+))?$/.exec(text)?.groups;
	if (parts === undefined) return false;
	const port = Number(parts['port'] ?? 53);
	return (isIP(parts['six'] ?? '') === 6 || isIP(parts['four'] ?? '') === 4) && port >= 1 && port <= 65_535;
}

const mostDomains = 20;

export function dnsChecks({ contents, ...around }: Database, names: Names): Checks {
	const { line, goOnline } = around;
	const set = async (name: 'bounceAddress' | 'publicUrl', none: string) => {
		goOnline();
		const value = (await contents().settings())[name];
		if (value === null) throw new Skip(none);
		return value;
	};
	const domainsOf = (addresses: readonly string[]) =>
		addresses.map(domainOf).filter((domain) => domain !== '');
	const senderDomains = async () => domainsOf(await contents().senders());
	const bounceDomains = async () => domainsOf([(await contents().settings()).bounceAddress ?? '']);
	const signedDomains = async () => [
		...(await senderDomains()),
		...(await contents().dkimKeys()).map(({ domain }) => domain),
	];
	const each = async (find: () => Promise<readonly string[]>, judge: Judge, more: Others = {}) => {
		const { missing = (domain) => skipped(`${domain} does not exist`), unasked } = more;
		if (unasked === undefined) goOnline();
		const domains = [...new Set(await find())];
		if (domains.length === 0) throw new Skip('no sender');
		const judgeOne = async (domain: string): Promise<Answer> => {
			try {
				goOnline();
				const texts = await names.txt(domain);
				return texts === null ? missing(domain) : await judge(domain, texts);
			} catch (error) {
				if (!(error instanceof Skip)) throw error;
				return unasked?.(domain) ?? skipped(error.message);
			}
		};
		const found = (await Promise.all(domains.slice(0, mostDomains).map(judgeOne))).flat();
		if (domains.length > mostDomains)
			found.push(skipped(`${domains.length - mostDomains} more domains were not checked`));
		// Several domains may be skipped for one reason. Report the reason once.
		return [...new Map(found.map((one) => [one.message, one])).values()];
	};
	return {
		'dns.domain': () =>
			each(
				async () => [...(await bounceDomains()), ...(await signedDomains())],
				(domain) => ok(`${domain} exists`),
				{
					missing: (domain) =>
						problem(
							`${domain} does not exist: receivers refuse mail from it`,
							'correct the spelling of the domain, register it, or use another one',
						),
				},
			),
		'dns.dkim': async () => {
			const keys = await contents().dkimKeys();
			const publish = line('engine', 'dkim', 'list', '-o', 'tsv', '--fields', 'dns_record');
			const unsigned = (domain: string) =>
				keys.some((key) => key.domain === domain)
					? null
					: warning(
							`mailctl does not sign mail from ${domain}, but large providers require a signature`,
							line('engine', 'dkim', 'add', '--domain', domain, '--selector', 's1'),
						);
			const judgeKey = async ({ name, value }: (typeof keys)[number]): Promise<Verdict> => {
				const published = ((await names.txt(name)) ?? []).map(keyIn);
				if (published.length === 0)
					return problem(`${name} has no TXT record, so no signature can be verified`, publish);
				if (published.includes(keyIn(value))) return ok(`${name} matches the signing key`);
				const isRevoked = published.every((key) => key === '');
				const says = isRevoked ? 'revokes the key' : 'has a different key, so every signature fails';
				return problem(`the TXT record of ${name} ${says}`, publish);
			};
			const judge = async (domain: string) =>
				unsigned(domain) ?? Promise.all(keys.filter((key) => key.domain === domain).map(judgeKey));
			return each(signedDomains, judge, { unasked: unsigned });
		},
		// SPF applies to the domain of the return path (RFC 7208 s.2.4).
		'dns.spf': () =>
			each(async () => {
				const bounces = await bounceDomains();
				return bounces.length > 0 ? bounces : senderDomains();
			}, judgeSpf),
		'dns.dmarc': () =>
			each(senderDomains, async (domain) => {
				// Use the record of the domain, or else of its closest parent (RFC 7489 s.6.6.3, RFC 9989).
				const labels = domain.split('.');
				for (let at = 0; at === 0 || at < labels.length - 1; at += 1) {
					const name = `_dmarc.${labels.slice(at).join('.')}`;
					const record = (await names.txt(name))?.find((text) => /^v=DMARC1\b/i.test(text));
					if (record !== undefined) return ok(`${name}: ${record}`);
				}
				return warning(
					`${domain} has no DMARC policy: large providers refuse bulk mail without one`,
					`_dmarc.${domain}. IN TXT "v=DMARC1; p=none"`,
				);
			}),
		'dns.bounces': async () => judgeBounces(await set('bounceAddress', 'no bounce address is set'), names),
		'connection.public-url': async () => visit(await set('publicUrl', 'no public URL is set'), around),
	};
}

type Judge = (domain: string, texts: readonly string[]) => Answer | Promise<Answer>;

interface Others {
	missing?: (domain: string) => Verdict;
	/** Judges the domain if DNS is unavailable. Null: the domain is skipped. */
	unasked?: (domain: string) => Verdict | null;
}

function keyIn(record: string): string | undefined {
	const tags = record.split(';').map((part) => part.replace(/\s/g, ''));
	return tags.find((part) => part.startsWith('p='))?.slice(2);
}

function judgeSpf(domain: string, texts: readonly string[]): Verdict {
	const [record, ...others] = texts.filter((text) => /^v=spf1( |$)/i.test(text));
	if (others.length > 0)
		return problem(
			`${domain} has ${others.length + 1} SPF records: receivers ignore all of them`,
			'merge the records into one (RFC 7208 s.3.2)',
		);
	if (record !== undefined) return ok(`${domain}: ${record}`);
	return warning(
		`${domain} has no SPF record: large providers refuse bulk mail without one`,
		`${domain}. IN TXT "v=spf1 mx ~all" ; add the servers that send mail from this domain`,
	);
}

async function judgeBounces(address: string, names: Names): Promise<Verdict> {
	const domain = domainOf(address);
	const mx = await names.mx(domain);
	const hosts = mx.filter((host) => host !== '');
	if (hosts.length > 0) return ok(`bounces to ${address} arrive at ${hosts.join(', ')}`);
	// A domain without MX records receives mail at its own address (RFC 5321 s.5.1).
	const host = mx.length > 0 ? [] : await names.addresses(domain);
	if (host === null) throw new Skip(`${domain} does not exist`);
	if (host.length > 0) return ok(`bounces to ${address} arrive at ${domain} itself`);
	const why = mx.length > 0 ? 'says that it accepts no mail' : 'has no MX, A or AAAA record';
	const fix = `${domain}. IN MX 10 mail.${domain}. ; the host that accepts the bounces`;
	return problem(`${domain} ${why}, so bounces to ${address} are lost`, fix);
}

/**
 * Accepts any status below 500, because a proxy may forward only the pages that mails link to. A status of 5xx means
 * that the proxy cannot reach the server. No answer is only a warning, because many networks cannot reach their own
 * public address.
 */
async function visit(publicUrl: string, { line, timeout }: Surroundings): Promise<Verdict> {
	const limit = timeout();
	try {
		const { status, body } = await fetch(`${publicUrl}/healthz`, { redirect: 'manual', signal: limit });
		await body?.cancel();
		if (status < 500) return ok(`${publicUrl} answers`);
		return warning(`${publicUrl} answers ${status}, so links in mails do not work`, line('serve'));
	} catch (error) {
		// The message of `fetch` is always "fetch failed"; its cause has the reason.
		const cause = limit.aborted ? limit.reason : error instanceof Error ? error.cause : error;
		const code = codeOf(cause);
		const says = `${publicUrl} does not answer this machine: ${whyUnreachable(code) ?? firstError(cause)}`;
		// A firewall may block only this machine, but a missing name is missing for everybody.
		if (code !== 'ENOTFOUND') return warning(says, line('serve'));
		const { hostname } = new URL(publicUrl);
		return problem(says, `publish an address for ${hostname} in DNS, or change the public URL`);
	}
}
