import { sleep } from '../../api/backoff.js';
import { addDays, formatWireDate, parseWireDate } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import { isRecord } from '../../api/json.js';
import { pauseSentence } from '../../api/pauses.js';
import { type Message, Report, SendResult } from '../../api/records.js';
import type { CommandContext } from '../frame/context.js';
import { type Check, check } from './model.js';
import type { Answer, Probe } from './probe.js';
import { Broken, Halted, Skipped, said, shown, unexpected, withQuery } from './probe.js';
import type { RunNames } from './records.js';
import { listsPath, resourceChecks } from './resources.js';

export interface RunOptions {
	names: RunNames;
	mail: { to: string; from: string } | null;
	signal: AbortSignal;
}

export function allChecks(cx: CommandContext, { names, mail, signal }: RunOptions): Check[] {
	// With `--send-to`, the checks may make the service call another host.
	const resources = resourceChecks(names, { callsOut: mail !== null });
	return [
		...accessChecks(cx, names),
		...resources,
		...reportChecks,
		...sendChecks(cx, { names, mail, signal }),
	];
}

function accessChecks(cx: CommandContext, { id }: RunNames): Check[] {
	const refuses = (verb: string, what: string, token: string | null): Check =>
		// Clients treat 401 and 403 alike (api-decisions 3), but only 401 says that the token is the reason.
		check('read', `auth.${verb}`, `${what} is refused`, async (probe) =>
			probe.refusal(await probe.call({ method: 'GET', path: listsPath, token }), what, 401),
		);
	return [
		check('read', 'connection.reachable', 'the service answers', async (probe) => {
			const answer = await reach(probe);
			const { status, headers, text, json } = answer;
			const elsewhere = (more: string) =>
				new Halted('elsewhere', `the base URL belongs to another service: ${said(answer)} ${status}${more}`);
			if (status >= 300 && status < 400)
				throw elsewhere(` with a redirect to ${headers['location'] ?? 'nowhere'}`);
			if (status === 404) throw elsewhere('');
			if (status < 500 && json === undefined && /^\s*</.test(text)) throw elsewhere(' with a web page');
			return status >= 500 && `with ${status}`;
		}),
		check('read', 'auth.token', 'the token is accepted', async (probe) => {
			const answer = await probe.get(listsPath);
			const { status } = answer;
			const { api, target } = await cx.connection();
			// A mailctl server answers 401 to an unknown token, so its 403 means that the token lacks a scope.
			if (status === 403 && (await api.capabilities()).service !== 'unknown')
				return 'the token does not permit reading lists';
			if (status === 401 || status === 403) {
				const hasToken = target.kind !== 'remote' || target.token !== null;
				const whose = hasToken ? ' to the given token' : ', and no token is given';
				throw new Halted('refused', `${said(answer)} ${status}${whose}`);
			}
			if (status !== 200) throw unexpected(answer, 200);
			probe.objectOf(answer);
			return null;
		}),
		refuses('wrong', 'a wrong token', `mailctl-smoke-${id}`),
		refuses('none', 'a request without a token', null),
		check('read', 'connection.slash', 'a path without the trailing slash works', async (probe) => {
			const path = listsPath.slice(0, -1);
			const answer = await probe.get(path);
			if (answer.status === 403) throw unexpected(answer, 200);
			if (answer.status !== 200) probe.deviate(`GET ${path} gets a ${answer.status}`);
		}),
		check('read', 'connection.unknown', 'an unknown path is refused in JSON', async (probe) =>
			probe.refusal(await probe.get('/sub/mailctl-smoke/'), 'an unknown path', 404),
		),
	];
}

async function reach(probe: Probe): Promise<Answer> {
	try {
		// Retry once at most, because a silent host would use up the deadline.
		return await probe.call({ method: 'GET', path: listsPath, retries: 1 });
	} catch (error) {
		if (error instanceof ApiError && error.code === 'network') throw new Halted('unreachable', error.message);
		if (error instanceof ApiError && error.code === 'bad_answer' && error.http === null)
			throw new Halted('elsewhere', `the base URL belongs to another service: ${error.message}`);
		throw error;
	}
}

const reportPath = '/stat/reports/events-report/';

/** These checks cannot know the right figures, so they judge only the shape and the days of a report. */
const reportChecks: readonly Check[] = [
	check('read', 'report.shape', 'the report has totals and daily figures for 7 days', async (probe) => {
		const { sent, days } = await readReport(probe, reportPath);
		if (days.length !== 7) probe.deviate(`without dates, the report covers ${days.length} days, not 7`);
		return `${days.length} days, ${shown(sent)} sent`;
	}),
	// Count back from the last day of a report without dates, because today may not have begun in the service's zone.
	check('read', 'report.dates', 'date_from and date_to choose the days', async (probe) => {
		const last = (await readReport(probe, reportPath)).days.at(-1);
		if (last === undefined) throw new Broken('the report without dates has no figures per day');
		const from = addDays(last, -2);
		const query = { date_from: formatWireDate(from), date_to: formatWireDate(last) };
		const { days } = await readReport(probe, withQuery(reportPath, query));
		for (const day of days)
			if (day < from || day > last)
				probe.fault(`${shown(formatWireDate(day))} is outside the requested days`);
		if (days.length !== 3) probe.deviate(`a report for three days covers ${days.length}`);
		return `${query.date_from} to ${query.date_to}`;
	}),
	check('read', 'report.events', 'event_types may be repeated', async (probe) => {
		await readReport(probe, `${reportPath}?event_types=SENT&event_types=OPENED`);
	}),
	check('read', 'report.refusals', 'a date in another format is refused', async (probe) => {
		const answer = await probe.get(withQuery(reportPath, { date_from: '2026-11-01' }));
		if (answer.status === 200) probe.deviate('a date in another format is ignored, not refused');
		else probe.refusal(answer, 'a date in another format', 400);
	}),
];

async function readReport(probe: Probe, path: string) {
	const { results } = await probe.object(path);
	if (!isRecord(results)) throw new Broken(`results is ${shown(results)}, not an object`);
	const gone = Report.missing(results);
	if (gone !== null) throw new Broken(`results.${gone.path} is not ${gone.kind}`);
	const { total, data } = results;
	probe.records(Report.keys.total, [total], 'total');
	const days = (Array.isArray(data) ? data : []).flatMap((one: unknown) => {
		const date = isRecord(one) ? one['date'] : undefined;
		const day = parseWireDate(String(date));
		if (day === null) probe.fault(`day: date is ${shown(date)}, not %d.%m.%Y`);
		return day ?? [];
	});
	return { sent: isRecord(total) ? total['sent'] : undefined, days };
}

const sendPath = '/message/send/';

function sendChecks(cx: CommandContext, { names, mail, signal }: RunOptions): Check[] {
	let accepted: Accepted | null = null;
	const { from = '', to = '' } = mail ?? {};
	const what = 'a message without subject and body';
	return [
		check('send', 'send.requires-body', `${what} is refused`, async (probe) =>
			probe.refusal(await probe.post(sendPath, { from, to: [to] }), what, 400),
		),
		check('send', 'send.message', 'one transactional message is accepted', async (probe) => {
			const text_body = `Sent by mailctl smoke to test whether mail is sent (run ${names.id}).`;
			const subject = `mailctl smoke ${names.id}`;
			const body = { type: 'TRANSACTIONAL', from, to: [to], subject, text_body };
			const answer = await probe.expect({ method: 'POST', path: sendPath, body }, 200);
			const result = probe.objectOf(answer);
			const gone = SendResult.missing(result);
			if (gone !== null) probe.fault(`answer: ${gone.path} is not ${gone.kind}`);
			const { messages: made, messages_created: count } = result;
			const messages: unknown[] = Array.isArray(made) ? made : [];
			if (count !== messages.length)
				probe.fault(`messages_created is ${shown(count)}, but the answer has ${messages.length} messages`);
			const [first] = messages;
			if (!isRecord(first)) throw new Broken(`no message was created for ${to}, which may be suppressed`);
			accepted = { id: String(first['id']), submission: answer.headers['x-submission-id'] ?? null };
		}),
		check('send', 'send.delivered', 'the message is sent', async (probe) => {
			if (accepted === null) throw new Skipped('send.message failed');
			const { state, last_reply: reply } = await deliver(cx, accepted, signal);
			if (state !== 'sent') probe.fault(`the message is ${state}: ${reply ?? 'no reply'}`);
			return reply;
		}),
	];
}

interface Accepted {
	id: string;
	submission: string | null;
}

async function deliver(
	cx: CommandContext,
	{ id, submission }: Accepted,
	signal: AbortSignal,
): Promise<Message> {
	const { api, local } = await cx.connection();
	const { messages } = (await api.capabilities()).ext;
	if (messages === undefined || submission === null)
		throw new Skipped('the service does not report the states of messages');
	if (local !== null) {
		if ((await local.settings.get())['smtp_url'] === undefined)
			throw new Skipped('no mail server is configured, so the message stays queued');
		const { kind, reason } = await local.deliver({ scope: { submission }, until: 'settled', signal });
		if (kind === 'paused') throw new Broken(pauseSentence(reason));
		return messages.get(id, { signal });
	}
	const [everyMs, most] = [250, 120];
	for (let tries = 0; tries < most; tries += 1) {
		const message = await messages.get(id, { signal });
		if (!['staged', 'queued', 'leased'].includes(message.state)) return message;
		const { paused } = await messages.progress({ submission }, { signal });
		if (paused !== null) throw new Broken(`the service sends nothing: ${paused}`);
		await sleep(everyMs, signal);
	}
	throw new Broken(`the message was not sent within ${(most * everyMs) / 1000} s`);
}
