/** The way to a deployment: its URL, its name, a connection, its certificate. */
import { lookup } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import type { Clock } from '../../../api/datetime.js';
import { isLoopback } from '../../../api/schema/url.js';
import { judgeCertificate, lookAtCertificate } from '../certificate.js';
import { type Check, type CheckEnvironment, ok, problem, skipped, type Verdict, warning } from '../model.js';
import { firstError } from '../timeouts.js';

/** Where a deployment is, and how the client gets there. */
export interface WayOptions {
	baseUrl: URL;
	/** PEM of `--ca-cert`; null: none. */
	caCert: string | null;
	/** `--insecure`. */
	isInsecure: boolean;
	/** A proxy is in between: the deployment is not reached from here. */
	isProxied: boolean;
	clock: Clock;
}

/** `connection.…`; the certificate only of https, and where there is a connection. */
export function connectionChecks(way: WayOptions, environment: CheckEnvironment): Check[] {
	const { baseUrl, isProxied } = way;
	const { isOffline, timeout } = environment;
	const asked = (judge: () => Promise<Verdict>) => async () => {
		if (isOffline) return skipped('--offline asks no other machine');
		return isProxied ? skipped('a proxy is in between') : judge();
	};
	const host = baseUrl.hostname.replace(/^\[|\]$/g, '');
	const port = Number(baseUrl.port || (baseUrl.protocol === 'https:' ? 443 : 80));
	// Each step runs once, and none after a failed one: a cause is reported once.
	const lookingUp = once(() => lookUp(host));
	const knocking = once(async () =>
		(await lookingUp()).level === 'ok' ? knock(host, port, timeout()) : skipped('there is no such name'),
	);
	const shaking = async () =>
		(await knocking()).level === 'ok'
			? shakeHands({ host, port }, way, timeout())
			: skipped('there is no connection');
	return [
		{ name: 'connection.url', run: async () => judgeUrl(way) },
		{ name: 'connection.name', run: asked(lookingUp) },
		{ name: 'connection.port', run: asked(knocking) },
		...(baseUrl.protocol === 'https:'
			? [
					{
						name: 'connection.certificate' as const,
						run: asked(shaking),
					},
				]
			: []),
	];
}

function once(judge: () => Promise<Verdict>): () => Promise<Verdict> {
	let judged: Promise<Verdict> | null = null;
	return () => {
		judged ??= judge();
		return judged;
	};
}

/** On plain http every machine on the way can read the token. */
function judgeUrl({ baseUrl, isInsecure }: Pick<WayOptions, 'baseUrl' | 'isInsecure'>): Verdict {
	if (baseUrl.protocol === 'https:')
		return isInsecure
			? warning(
					'--insecure: any machine on the way may answer in its place, and take the token',
					'leave --insecure out; --ca-cert FILE names an authority of your own',
				)
			: ok(`${baseUrl.origin} goes over TLS`);
	if (isLoopback(baseUrl.hostname)) return ok(`${baseUrl.origin} does not leave this machine`);
	return warning(
		`plain http to ${baseUrl.host}: the token and all data go in the clear`,
		`use https://${baseUrl.host}`,
	);
}

async function lookUp(host: string): Promise<Verdict> {
	if (isIP(host) !== 0) return ok(`${host} is an address itself`);
	try {
		const found = await lookup(host, { all: true });
		return ok(`${host} is ${found.map(({ address }) => address).join(', ')}`);
	} catch (error) {
		const code = error instanceof Error && 'code' in error ? String(error.code) : '';
		const why = code === 'ENOTFOUND' ? 'there is no such name' : `its name cannot be looked up (${code})`;
		return problem(`${host}: ${why}`, 'look at the spelling of the base URL, and at the DNS of this machine');
	}
}

function knock(host: string, port: number, signal: AbortSignal): Promise<Verdict> {
	return new Promise((resolve) => {
		const socket = connect({ host, port, signal });
		const end = (verdict: Verdict) => {
			socket.destroy();
			resolve(verdict);
		};
		socket.once('connect', () => end(ok(`${host}:${port} takes connections`)));
		socket.once('error', (error) => {
			const why = signal.aborted ? firstError(signal.reason) : firstError(error);
			end(problem(`${host}:${port}: ${why}`, 'look whether the service runs, and at firewalls on the way'));
		});
	});
}

async function shakeHands(
	server: { host: string; port: number },
	{ caCert, isInsecure, clock }: WayOptions,
	signal: AbortSignal,
): Promise<Verdict> {
	const ca = caCert === null ? null : { pem: caCert, alone: false };
	try {
		const seen = await lookAtCertificate({ ...server, ca, signal });
		return judgeCertificate(seen, {
			now: clock.now(),
			isChecked: !isInsecure,
			renew: 'renew it on the server',
			trust: '--ca-cert FILE names an authority of your own',
			rename: 'give a base URL with a name that it is for',
		});
	} catch (error) {
		return problem(
			`no TLS with ${server.host}:${server.port}: ${firstError(error)}`,
			'look at the scheme of the base URL',
		);
	}
}
