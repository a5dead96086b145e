/** All checks in their order: the way to the service and its tokens, its collections, its report, and one message. */
import { sleep } from '../../api/backoff.js';
import { addDays, formatWireDate, parseWireDate } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import { isRecord } from '../../api/json.js';
import { pauseSentence } from '../../api/pauses.js';
import { type Message, Report, SendResult } from '../../api/records.js';
import type { Check } from './model.js';
import {
	type Answer,
	Broken,
	Halted,
	type Probe,
	Skipped,
	said,
	shown,
	unexpected,
	withQuery,
} from './probe.js';
import { type Given, listsPath, resourceChecks } from './resources.js';

export function allChecks(given: Given): Check[] {
	return [...accessChecks(given), ...resourceChecks(given), ...reportChecks, ...sendChecks(given)];
}

/** Without an answer of the service, or with a refused token, the first two throw `Halted`. */
function accessChecks({ connection, hasToken, names }: Given): Check[] {
	const refuses = (verb: string, what: string, token: string | null): Check => ({
		id: `auth.${verb}`,
		title: `${what} is refused`,
		need: 'read',
		run: async (probe) => {
			// Clients treat 401 and 403 alike (api-decisions 3), but 401 names the reason.
			probe.refusal(await probe.call({ method: 'GET', path: listsPath, token }), what, 401);
			return undefined;
		},
	});
	return [
		{
			id: 'connection.reachable',
			title: 'the deployment answers',
			need: 'read',
			run: async (probe) => {
				const answer = await reach(probe);
				const other = otherThanLists(answer);
				if (other !== null)
					throw new Halted('elsewhere', `this is not the service: ${said(answer)} ${other}`);
				return answer.status >= 500 ? `with ${answer.status}` : undefined;
			},
		},
		{
			id: 'auth.token',
			title: 'the token is accepted',
			need: 'read',
			run: async (probe) => {
				const answer = await probe.get(listsPath);
				const { status } = answer;
				// A mailctl server answers 401 to a token that it does not know: its 403 is a missing right.
				if (status === 403 && (await (await connection()).api.capabilities()).service !== 'unknown')
					return 'it may not read lists';
				if (status === 401 || status === 403) {
					const whose = hasToken ? ' to the token given' : ', and there is no token to give';
					throw new Halted('refused', `${said(answer)} ${status}${whose}`);
				}
				if (status !== 200) throw unexpected(answer, 200);
				probe.objectOf(answer);
				return undefined;
			},
		},
		refuses('wrong', 'a wrong token', `mailctl-smoke-${names.id}`),
		refuses('none', 'a request without a token', null),
		{
			id: 'connection.slash',
			title: 'a path without its last slash is found',
			need: 'read',
			run: async (probe) => {
				const path = listsPath.slice(0, -1);
				const answer = await probe.get(path);
				if (answer.status === 403) throw unexpected(answer, 200);
				if (answer.status !== 200) probe.deviate(`GET ${path} is a ${answer.status}`);
				return undefined;
			},
		},
		{
			id: 'connection.unknown',
			title: 'an unknown path is refused in JSON',
			need: 'read',
			run: async (probe) => {
				probe.refusal(await probe.get('/sub/mailctl-smoke/'), 'an unknown path', 404);
				return undefined;
			},
		},
	];
}

async function reach(probe: Probe): Promise<Answer> {
	try {
		// A host that never answers must not use up the deadline.
		return await probe.call({ method: 'GET', path: listsPath, retries: 1 });
	} catch (error) {
		if (error instanceof ApiError && error.code === 'network') throw new Halted('unreachable', error.message);
		if (error instanceof ApiError && error.code === 'bad_answer' && error.http === null)
			throw new Halted('elsewhere', `this is not the service: ${error.message}`);
		throw error;
	}
}

/** What no deployment answers to a question for its lists; null: a deployment may answer so. */
function otherThanLists({ status, headers, text, json }: Answer): string | null {
	if (status >= 300 && status < 400) return `${status} and redirects to ${headers['location'] ?? 'nowhere'}`;
	if (status === 404) return '404';
	if (status >= 500 || json !== undefined) return null;
	return /^\s*</.test(text) ? `${status} with a web page` : null;
}

const reportPath = '/stat/reports/events-report/';

/** Sent messages are unknown here: the shape is checked, and the days must be those that were asked for. */
const reportChecks: readonly Check[] = [
	// A default window of 7 or 8 days (api-decisions 35).
	{
		...{ id: 'report.shape', title: 'totals and days of the last week', need: 'read' },
		run: async (probe) => {
			const { sent, days } = await readReport(probe, reportPath);
			if (days.length !== 7) probe.deviate(`without dates it has ${days.length} days, not 7`);
			return `${days.length} days, ${shown(sent)} sent`;
		},
	},
	// Three days up to the last one of a report without dates: past or present in every time zone.
	{
		...{ id: 'report.dates', title: 'date_from and date_to choose the days', need: 'read' },
		run: async (probe) => {
			const last = (await readReport(probe, reportPath)).days.at(-1);
			if (last === undefined) throw new Broken('the report without dates has no last day to count from');
			const from = addDays(last, -2);
			const query = { date_from: formatWireDate(from), date_to: formatWireDate(last) };
			const { days } = await readReport(probe, withQuery(reportPath, query));
			for (const day of days)
				if (day < from || day > last)
					probe.fault(`${shown(formatWireDate(day))} is outside of the days asked for`);
			if (days.length !== 3) probe.deviate(`three days asked for, ${days.length} came`);
			return `${query.date_from} to ${query.date_to}`;
		},
	},
	{
		...{ id: 'report.events', title: 'event_types may be repeated', need: 'read' },
		run: async (probe) => {
			await readReport(probe, `${reportPath}?event_types=SENT&event_types=OPENED`);
			return undefined;
		},
	},
	{
		...{ id: 'report.refusals', title: 'a date in another format is refused', need: 'read' },
		run: async (probe) => {
			const answer = await probe.get(withQuery(reportPath, { date_from: '2026-11-01' }));
			if (answer.status === 200) probe.deviate('a date in another format is ignored, not refused');
			else probe.refusal(answer, 'a date in another format', 400);
			return undefined;
		},
	},
];

async function readReport(probe: Probe, path: string) {
	const { results } = await probe.object({ method: 'GET', path }, 200);
	if (!isRecord(results)) throw new Broken(`results is ${shown(results)}, not an object`);
	const gone = Report.missing(results);
	if (gone !== null) throw new Broken(`results.${gone.path} is not ${gone.kind}`);
	const { total, data } = results;
	probe.records(Report.keys.total, [total], 'total');
	const days = (Array.isArray(data) ? data : []).flatMap((one: unknown) => {
		const date = isRecord(one) ? one['date'] : undefined;
		const day = parseWireDate(String(date));
		if (day === null) probe.fault(`day: date is ${shown(date)}, not %d.%m.%Y`);
		return day === null ? [] : [day];
	});
	return { sent: isRecord(total) ? total['sent'] : undefined, days };
}

/** One message to one address. The last check waits half a minute at most for its outcome. */
function sendChecks(given: Given): Check[] {
	let accepted: { id: string; submission: string | null } | null = null;
	const { from = '', to = '' } = given.mail ?? {};
	return [
		{
			...{ id: 'send.requires-body', title: 'a message without subject and body is refused', need: 'send' },
			run: async (probe) => {
				const answer = await probe.call({ method: 'POST', path: '/message/send/', body: { from, to: [to] } });
				probe.refusal(answer, 'a message without subject and body', 400);
				return undefined;
			},
		},
		{
			...{ id: 'send.message', title: 'one transactional message is accepted', need: 'send' },
			run: async (probe) => {
				const { id: run } = given.names;
				const text_body = `Sent by mailctl smoke to see whether mail leaves; run ${run}.`;
				const body = { type: 'TRANSACTIONAL', from, to: [to], subject: `mailctl smoke ${run}`, text_body };
				const answer = await probe.expect({ method: 'POST', path: '/message/send/', body }, 200);
				const result = probe.objectOf(answer);
				const gone = SendResult.missing(result);
				if (gone !== null) probe.fault(`answer: ${gone.path} is not ${gone.kind}`);
				const messages = Array.isArray(result['messages']) ? result['messages'] : [];
				if (result['messages_created'] !== messages.length)
					probe.fault(
						`messages_created is ${shown(result['messages_created'])} with ${messages.length} messages`,
					);
				const [first]: unknown[] = messages;
				if (!isRecord(first))
					throw new Broken(`no message was created for ${to}: is the address suppressed?`);
				accepted = { id: String(first['id']), submission: answer.headers['x-submission-id'] ?? null };
				return undefined;
			},
		},
		{
			...{ id: 'send.delivered', title: 'the message is sent', need: 'send' },
			run: async (probe) => {
				if (accepted === null) throw new Skipped('send.message made nothing to try it with');
				const { state, last_reply: reply } = await deliver(given, accepted);
				if (state !== 'sent') probe.fault(`the message is ${state}: ${reply ?? 'no reply'}`);
				return reply ?? undefined;
			},
		},
	];
}

/** This run delivers it from a database of this machine, and asks a mailctl server for its state. */
async function deliver(
	{ connection, signal }: Given,
	{ id, submission }: { id: string; submission: string | null },
): Promise<Message> {
	const { api, local } = await connection();
	const { messages } = (await api.capabilities()).ext;
	if (messages === undefined || submission === null)
		throw new Skipped('the deployment does not tell what becomes of a message');
	if (local !== null) {
		if ((await local.settings.get())['smtp_url'] === undefined)
			throw new Skipped('no mail server is configured; it is queued');
		const { kind, reason } = await local.deliver({ scope: { submission }, until: 'settled', signal });
		if (kind === 'paused') throw new Broken(pauseSentence(reason));
		return messages.get(id, { signal });
	}
	const [everyMs, most] = [250, 120];
	for (let tries = 0; tries < most; tries += 1) {
		const message = await messages.get(id, { signal });
		if (!['staged', 'queued', 'leased'].includes(message.state)) return message;
		const { paused } = await messages.progress({ submission }, { signal });
		if (paused !== null) throw new Broken(`the service sends nothing at the moment: ${paused}`);
		await sleep(everyMs, signal);
	}
	throw new Broken(`the message is not sent after ${(most * everyMs) / 1000} s`);
}
