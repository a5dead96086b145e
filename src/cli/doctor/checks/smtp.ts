/** The mail server: whether it lets a worker in, and the certificate it shows. No mail is sent. */
import type { Clock } from '../../../api/datetime.js';
import type { SmtpTest } from '../../frame/connection.js';
import { replyOf } from '../../verbs/smtp-reply.js';
import { judgeCertificate, lookAtCertificate } from '../certificate.js';
import type { ContentsCheck } from '../contents-checks.js';
import type { InspectedSmtp } from '../inspection.js';
import { type Check, type CheckEnvironment, ok, problem, skipped, type Verdict } from '../model.js';
import { startTls } from '../start-tls.js';
import { firstError, mailServerMs } from '../timeouts.js';

/** `smtp.login` and `smtp.certificate`. */
export function smtpChecks(
	ofContents: ContentsCheck,
	clock: Clock,
	{ line, isOffline, timeout }: CheckEnvironment,
): Check[] {
	const asked = (judge: (smtp: InspectedSmtp, test: TrySmtp) => Promise<Verdict>) =>
		ofContents(async ({ settings, testSmtp }) => {
			if (isOffline) return skipped('--offline asks no other machine');
			const { smtp } = await settings();
			return smtp === null ? skipped('no mail server is set') : judge(smtp, testSmtp);
		});
	return [
		{
			name: 'smtp.login',
			run: asked((smtp, test) => logIn(smtp, { test, timeout, line })),
		},
		{ name: 'smtp.certificate', run: asked((smtp) => judgeServer(smtp, { clock, timeout, line })) },
	];
}

type TrySmtp = (signal: AbortSignal) => Promise<SmtpTest>;

async function logIn(
	{ host, port }: InspectedSmtp,
	{ test, timeout, line }: Pick<CheckEnvironment, 'timeout' | 'line'> & { test: TrySmtp },
): Promise<Verdict> {
	const limit = timeout(mailServerMs);
	const tested = await test(limit);
	if (tested.ok || !limit.aborted) return judgeTest(tested, line);
	return problem(`${host}:${port}: ${firstError(limit.reason)}`, line(...otherServer));
}

function judgeTest(
	{ host, port, user, ehlo_name, ok: isIn, reply, remedy, duration_ms }: SmtpTest,
	line: CheckEnvironment['line'],
): Verdict {
	const server = `${host}:${port}`;
	if (isIn) return ok(`${server} lets ${user ?? 'this machine'} in (${duration_ms} ms, EHLO ${ehlo_name})`);
	const said = replyOf({ host, port, reply });
	return problem(`${server} takes no mail from here: ${said}`, line(...(mend[remedy ?? ''] ?? otherServer)));
}

const mend: Readonly<Record<string, string[]>> = {
	login: ['engine', 'init', '--smtp-password-file', 'FILE'],
	smtp_ehlo_name: ['engine', 'settings', 'set', 'smtp_ehlo_name', 'mail.example.com'],
};

/** A hint to repeat the test would not help: this check is the test. */
const otherServer = ['engine', 'init', '--smtp', 'smtp://USER@HOST:587'];

async function judgeServer(
	{ host, port, security, ca, ehloName }: InspectedSmtp,
	{ clock, timeout, line }: Pick<CheckEnvironment, 'timeout' | 'line'> & { clock: Clock },
): Promise<Verdict> {
	if (security === 'never') return skipped('TLS is not asked for (tls=never)');
	const limit = timeout(mailServerMs);
	try {
		const socket = security === 'implicit' ? null : await startTls({ host, port, ehloName, signal: limit });
		if (socket === 'refused')
			return security === 'opportunistic'
				? ok(`${host}:${port} offers no TLS, and none is asked for`)
				: problem(`${host}:${port} offers no TLS, and nothing is sent without`);
		const seen = await lookAtCertificate({
			host,
			port,
			ca: ca === null ? null : { pem: ca, alone: true },
			...(socket !== null && { socket }),
			signal: limit,
		});
		return judgeCertificate(seen, {
			now: clock.now(),
			isChecked: security !== 'opportunistic',
			renew: 'the operator of the mail server has to renew it',
			trust: `${line('engine', 'settings', 'set', 'smtp_ca', '-')} < ca.pem`,
			rename: 'smtp_url must use a name that it is for',
		});
	} catch (error) {
		if (limit.aborted) return skipped(firstError(limit.reason));
		const isUnreached = error instanceof Error && 'code' in error && 'syscall' in error;
		// The check of the login reports the cause.
		if (isUnreached) return skipped('the mail server is not reached');
		return problem(`no certificate was seen: ${firstError(error)}`);
	}
}
