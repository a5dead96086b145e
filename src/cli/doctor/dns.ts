/** Answers of DNS: records of a name, none, or no answer. */
import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { UsageError } from '../frame/errors.js';

/** `none`: there is no such record, and perhaps not even such a name (RFC 8020); `failed`: unknown. */
export type Looked =
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
	// Twice, and no longer than five seconds in all: a silent server must not hold up the report.
	const resolver = new Resolver({ timeout: 1_500, tries: 2 });
	if (server !== undefined) setServer(resolver, server);
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

/** Looked at before Node.js does: port 0 ends the process there, and one above 65535 becomes another. */
function setServer(resolver: Resolver, server: string): void {
	if (!isServer(server))
		throw new UsageError(`--name-server: "${server}" is no IP address, alone or with a port of 1 to 65535`, {
			hint: '--name-server 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53',
		});
	resolver.setServers([server]);
}

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
