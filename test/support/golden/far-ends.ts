/** What the calls lead to beside their target: a mail server, webhooks, names, and deployments that fail. */
import { type NameServer, startNameServer } from '../name-server.js';
import { type SmtpSink, startSmtpSink } from '../smtp-sink.js';
import { startTarget } from '../target.js';
import { startFaulty } from './faulty.js';

export interface FarEnds {
	/** For `{name}` in a call. */
	values: Record<string, string>;
	/** Hosts and ports as the records name them. */
	names: Record<string, string>;
	sink: SmtpSink;
	close(): Promise<void>;
}

/** What a mail server says to the first part of an address. */
const refusals: Readonly<Record<string, readonly [code: number, text: string]>> = {
	refused: [550, '5.1.1 no such user'],
	later: [451, '4.7.1 try again later'],
	spam: [554, '5.6.0 message looks like spam'],
	full: [552, '5.2.2 mailbox full'],
};

export async function startFarEnds(): Promise<FarEnds> {
	const sink = await startSmtpSink({
		onRcptTo: ({ address }, _session, callback) => {
			const [code, text] = refusals[address.split('@')[0] ?? ''] ?? [];
			callback(code === undefined ? null : Object.assign(new Error(text), { responseCode: code }));
		},
	});
	const hook = await startTarget(204);
	const badHook = await startTarget(500);
	const goneHook = await startTarget(410);
	const dns: NameServer = await startNameServer({
		'example.com': { MX: [[10, 'mx.example.com']], TXT: ['v=spf1 a:mail.example.com -all'] },
		'mx.example.com': { A: ['192.0.2.25'] },
	});
	const faulty = await startFaulty();
	const smtp = `127.0.0.1:${sink.port}`;
	const origin = ({ url }: { url: string }) => new URL(url).host;
	return {
		values: {
			smtp,
			hook: hook.url,
			badHook: badHook.url,
			goneHook: goneHook.url,
			dns: dns.address,
			faulty: faulty.url,
		},
		names: {
			smtp,
			hook: origin(hook),
			'bad-hook': origin(badHook),
			'gone-hook': origin(goneHook),
			dns: dns.address,
			faulty: origin(faulty),
		},
		sink,
		close: async () => {
			dns.close();
			await Promise.all([sink.close(), hook.close(), badHook.close(), goneHook.close(), faulty.close()]);
		},
	};
}
