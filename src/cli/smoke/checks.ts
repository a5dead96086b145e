/** All checks in their order: the way to the service and its tokens, its collections, its report, and one message. */
import { addDays, daysBetween, formatWireDate, parseWireDate } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import { isRecord } from '../../api/json.js';
import { pauseSentence } from '../../api/pauses.js';
import { type Message, Report, SendResult } from '../../api/records.js';
import { sleep } from '../../api/sleep.js';
import type { Answer } from './caller.js';
import type { Check } from './model.js';
import {
	Broken,
	Halted,
	type Json,
	type Probe,
	Skipped,
	said,
	shown,
	unexpected,
	withQuery,
} from './probe.js';
import {
	Context,
	fieldChecks,
	type Given,
	listChecks,
	listsPath,
	subscriberChecks,
	webhookChecks,
} from './resources.js';

export function allChecks(given: Given): Check[] {
	const context = new Context(given);
	return [
		...connectionChecks(given),
		...authChecks(given),
		...listChecks(context),
		...subscriberChecks(context),
		...fieldChecks(context),
		...webhookChecks(context),
		...reportChecks(),
		...sendChecks(given),
	];
}

/** Without an answer of the service the first throws `Halted`, and nothing else is checked. */
function connectionChecks({ connection }: Given): Check[] {
	return [
		{
			id: 'connection.reachable',
			title: 'the deployment answers',
			need: 'read',
			judgesRefusals: true,
			run: async (probe) => {
				const answer = await reach(probe);
				const other = otherThanLists(answer);
				if (other !== null)
					throw new Halted('elsewhere', `this is not the service: ${said(answer)} ${other}`);
				return answer.status >= 500 ? `with ${answer.status}` : undefined;
			},
		},
		{
			id: 'connection.service',
			title: 'what it says of itself is understood',
			need: 'read',
			run: async () => {
				const { service, ext } = await (await connection()).api.capabilities();
				if (service === 'unknown') return 'a service that is not mailctl';
				return `mailctl with ${Object.keys(ext).sort().join(', ') || 'no extensions'}`;
			},
		},
		{
			id: 'connection.slash',
			title: 'a path without its last slash is found',
			need: 'read',
			run: async (probe) => {
				const path = listsPath.slice(0, -1);
				const { status } = await probe.get(path);
				// About the token, and not about the path.
				if (status === 401) throw new Skipped('the token is refused');
				if (status !== 200) probe.deviate(`GET ${path} is a ${status}`);
				return undefined;
			},
		},
		{
			id: 'connection.unknown',
			title: 'a path that is not the service’s is refused in JSON',
			need: 'read',
			judgesRefusals: true,
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
		if (error instanceof ApiError && error.misdirected === 'protocol')
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

/** Where the token, or its absence, is refused, the first throws `Halted`. */
function authChecks({ connection, hasToken, names }: Given): Check[] {
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
			id: 'auth.token',
			title: 'the token is accepted',
			need: 'read',
			judgesRefusals: true,
			run: async (probe) => {
				const answer = await probe.get(listsPath);
				const { status } = answer;
				// A mailctl server answers 401 to a token that it does not know: its 403 is a missing right.
				const isOurs = async () => (await (await connection()).api.capabilities()).service !== 'unknown';
				if (status === 403 && (await isOurs())) return 'it may not read lists';
				if (status === 401 || status === 403) {
					const whose = hasToken ? ' to the token given' : ', and there is no token to give';
					throw new Halted('refused', `${said(answer)} ${status}${whose}`);
				}
				if (status !== 200) throw new Broken(unexpected(answer, 200));
				probe.objectOf(answer);
				return undefined;
			},
		},
		refuses('wrong', 'a wrong token', `mailctl-smoke-${names.id}`),
		refuses('none', 'a request without a token', null),
	];
}

const reportPath = '/stat/reports/events-report/';

/** Sent messages are unknown here: days must be the requested ones, totals the sum of the days. */
function reportChecks(): Check[] {
	const check = (verb: string, title: string, run: Check['run']): Check => ({
		id: `report.${verb}`,
		title,
		need: 'read',
		run,
	});
	return [
		// A default window of 7 or 8 days (api-decisions 35).
		check('shape', 'totals and days of the last week', async (probe) => {
			const { total, days } = await readReport(probe);
			if (days.length !== 7 && days.length !== 8)
				probe.deviate(`without dates it has ${days.length} days, not 7`);
			else if (days.length === 8) probe.deviate('without dates it has 8 days: a week ago to today');
			judgeDays(probe, total, days);
			return `${days.length} days, ${shown(total['sent'])} sent`;
		}),
		// Three days up to the last one of a report without dates: past or present in every time zone.
		check('dates', 'date_from and date_to choose the days', async (probe) => {
			const last = parseWireDate(String((await readReport(probe)).days.at(-1)?.['date']));
			if (last === null) throw new Broken('the report without dates has no last day to count from');
			const from = addDays(last, -2);
			const query = { date_from: formatWireDate(from), date_to: formatWireDate(last) };
			const { total, days } = await readReport(probe, withQuery(reportPath, query));
			for (const { date } of days) {
				const day = parseWireDate(String(date));
				if (day !== null && (day < from || day > last))
					probe.fault(`${shown(date)} is outside of the days asked for`);
			}
			if (days.length !== 3) probe.deviate(`three days asked for, ${days.length} came`);
			judgeDays(probe, total, days);
			return `${query.date_from} to ${query.date_to}`;
		}),
		check('events', 'event_types may be repeated', async (probe) => {
			await readReport(probe, `${reportPath}?event_types=SENT&event_types=OPENED`);
			return undefined;
		}),
		check('refusals', 'a date that is none is refused', async (probe) => {
			const answer = await probe.get(withQuery(reportPath, { date_from: '2026-11-01' }));
			if (answer.status === 200) probe.deviate('a date in another format is ignored, not refused');
			else probe.refusal(answer, 'a date in another format', 400);
			return undefined;
		}),
	];
}

async function readReport(probe: Probe, path = reportPath): Promise<{ total: Json; days: readonly Json[] }> {
	const { results } = await probe.object({ method: 'GET', path }, 200);
	if (!isRecord(results)) throw new Broken(`results is ${shown(results)}, not an object`);
	const { total, data } = results;
	const gone = Report.missing(results);
	if (gone !== null) throw new Broken(`results.${gone.path} is not ${gone.kind}`);
	probe.records(Report.keys.total, [total], 'total');
	const { opened_percent: opened } = isRecord(total) ? total : {};
	if (typeof opened === 'string' && !/^\d{1,3}(\.\d+)?$/.test(opened))
		probe.fault(`total: opened_percent is ${shown(opened)}, which holds no number`);
	const days = Array.isArray(data) ? data.filter(isRecord) : [];
	const odd = days.find(({ date }) => parseWireDate(String(date)) === null);
	if (odd !== undefined) probe.fault(`day: date is ${shown(odd['date'])}, not %d.%m.%Y`);
	return { total: isRecord(total) ? total : {}, days };
}

/** Figures may change between two reads, not within one answer. */
function judgeDays(probe: Probe, total: Json, days: readonly Json[]): void {
	const read = days.map(({ date }) => parseWireDate(String(date)) ?? '');
	const steps = read.slice(1).map((day, at) => (day === '' ? 1 : daysBetween(read[at] ?? '', day)));
	if (steps.some((step) => step === 0)) probe.fault('a day is there twice');
	else if (steps.some((step) => step < 0)) probe.deviate('the days are not ascending');
	else if (steps.some((step) => step > 1)) probe.deviate('days without events are left out');
	for (const key of ['sent', 'opened']) {
		const sum = days.reduce((before, day) => before + Number(day[key]), 0);
		if (sum !== Number(total[key]))
			probe.deviate(`${key} of the days add up to ${sum}, the total says ${shown(total[key])}`);
	}
}

const sendPath = '/message/send/';

interface Accepted {
	id: string;
	submission: string | null;
}

/** One message to one address. The last check waits half a minute at most for its outcome. */
function sendChecks(given: Given): Check[] {
	let accepted: Accepted | null = null;
	const check = (verb: string, title: string, run: Check['run']): Check => ({
		id: `send.${verb}`,
		title,
		need: 'send',
		run,
	});
	const { from = '', to = '' } = given.mail ?? {};
	return [
		check('requires-body', 'a message without subject and body is refused', async (probe) => {
			const answer = await probe.call({ method: 'POST', path: sendPath, body: { from, to: [to] } });
			probe.refusal(answer, 'a message without subject and body', 400);
			return undefined;
		}),
		check('message', 'one transactional message is accepted', async (probe) => {
			const { id: run } = given.names;
			const text_body = `Sent by mailctl smoke to see whether mail leaves; run ${run}.`;
			const body = { type: 'TRANSACTIONAL', from, to: [to], subject: `mailctl smoke ${run}`, text_body };
			const answer = await probe.expect({ method: 'POST', path: sendPath, body }, 200);
			const result = probe.objectOf(answer);
			const gone = SendResult.missing(result);
			if (gone !== null) probe.fault(`answer: ${gone.path} is not ${gone.kind}`);
			if (result['result'] === false) probe.fault('answer: result is false, not true');
			const messages = Array.isArray(result['messages']) ? result['messages'] : [];
			if (result['messages_created'] !== messages.length)
				probe.fault(
					`messages_created is ${shown(result['messages_created'])} with ${messages.length} messages`,
				);
			const [first]: unknown[] = messages;
			if (!isRecord(first)) throw new Broken(`no message was created for ${to}: is the address suppressed?`);
			if (String(first['to']).toLowerCase() !== to.toLowerCase())
				probe.fault(`the message is to ${shown(first['to'])}`);
			accepted = { id: String(first['id']), submission: answer.headers['x-submission-id'] ?? null };
			return undefined;
		}),
		check('delivered', 'the message is sent', (probe) => {
			if (accepted === null) throw new Skipped('send.message made nothing to try it with');
			return deliver(probe, given, accepted);
		}),
	];
}

/** A database of this machine: this run delivers it. `mailctl serve`: asked for the state. Others may tell events. */
async function deliver(
	probe: Probe,
	{ connection, signal }: Given,
	{ id, submission }: Accepted,
): Promise<string | undefined> {
	const { api, local } = await connection();
	const { messages } = (await api.capabilities()).ext;
	const call = { signal };
	if (messages === undefined) return poll(signal, () => eventOf(() => api.events(id, call)));
	const conclude = ({ state, last_reply: reply }: Message) => {
		if (state !== 'sent') probe.fault(`the message is ${state}: ${reply ?? 'no reply'}`);
		return { detail: reply ?? undefined };
	};
	if (local !== null) {
		if ((await local.settings.get())['smtp_url'] === undefined)
			throw new Skipped('no mail server is configured; it is queued');
		if (submission === null) throw new Skipped('the answer names no submission; it is queued');
		const { kind, reason } = await local.deliver({ scope: { submission }, until: 'settled', signal });
		if (kind === 'paused') throw new Broken(pauseSentence(reason));
		return conclude(await messages.get(id, call)).detail;
	}
	return poll(signal, async () => {
		const message = await messages.get(id, call);
		if (!['staged', 'queued', 'leased'].includes(message.state)) return conclude(message);
		const paused = submission === null ? null : (await messages.progress({ submission }, call)).paused;
		if (paused !== null) throw new Broken(`the service sends nothing at the moment: ${paused}`);
		return null;
	});
}

/** Null: nothing final yet. */
type Ended = { detail: string | undefined } | null;

async function poll(signal: AbortSignal, ask: () => Promise<Ended>): Promise<string | undefined> {
	const [everyMs, most] = [250, 120];
	for (let tries = 0; tries < most; tries += 1) {
		const ended = await ask();
		if (ended !== null) return ended.detail;
		await sleep(everyMs, signal);
	}
	throw new Broken(`the message is not sent after ${(most * everyMs) / 1000} s`);
}

async function eventOf(read: () => Promise<{ type: string }[]>): Promise<Ended> {
	const events = await read().catch((error: unknown) => {
		if (error instanceof ApiError && error.code === 'not_found')
			throw new Skipped('the deployment does not tell what becomes of a message');
		throw error;
	});
	const types = events.map(({ type }) => type);
	if (types.includes('SENT')) return { detail: undefined };
	const bounce = types.find((type) => type === 'HARDBOUNCED' || type === 'SOFTBOUNCED');
	if (bounce !== undefined) throw new Broken(`the message is ${bounce}`);
	return null;
}
