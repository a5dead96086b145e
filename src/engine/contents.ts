import { createHash } from 'node:crypto';
import type { Call } from '../api/api.js';
import { type Attachment, type Attachments, isSha256, otherBytes, sizeFault } from '../api/attachments.js';
import type { Micros } from '../api/datetime.js';
import { ApiError, type FieldError, type FieldErrors, invalid, notFound } from '../api/errors.js';
import { canonicalJson } from '../api/json.js';
import type { CheckedSend, Content, StoredParts } from '../api/messages.js';
import type { Template, Tracking, Uuid } from '../api/records.js';
import { refusal } from '../api/refusals.js';
import { isLoopbackUrl } from '../api/schema/url.js';
import { referencePattern, usedVariables } from '../api/variables.js';
import { cidFaults } from '../content/attachments.js';
import { contentSha256 } from '../content/hash.js';
import { contentSize, contextErrors, joinFault } from '../content/message-size.js';
import type { IdempotencyKey } from '../store/campaigns.js';
import { type EngineContext, found, seenBy } from './context.js';
import { noSuch, unverifiedSender } from './rules/subscribers.js';
import { readSettings } from './settings.js';

interface Wanted {
	from_key: string;
	type: 'TRANSACTIONAL' | 'BULK';
	subject: string | null;
	text_body: string | null;
	html_body: string | null;
	template_unique_id: Uuid | null;
	list_id: number | null;
	disable_inline: boolean;
	attachments?: readonly Attachment[];
	context: Readonly<Record<string, string>>;
}

interface ResolvedContent {
	content: Content;
	content_sha256: string;
	variables: readonly string[];
}

/** Throws all field errors together. The store checks sender and list again when it accepts the content. */
export async function resolveContent(
	context: Pick<EngineContext, 'store'>,
	wanted: Wanted,
): Promise<ResolvedContent> {
	const { errors, template } = await lookUp(context, wanted);
	const bodies =
		template === null
			? { subject: wanted.subject ?? '', text: wanted.text_body, html: wanted.html_body }
			: {
					subject: template.name,
					text: emptyAsNull(template.text_body),
					html: emptyAsNull(template.html_body),
				};
	const { disable_inline, attachments = [] } = wanted;
	const content: Content = { ...bodies, disable_inline, ...(attachments.length > 0 && { attachments }) };
	const wrong = await bodyErrors({ text_body: content.text, html_body: content.html });
	const isWrong = Object.keys(wrong).length > 0;
	const fault = isWrong ? null : joinFault(contentSize(content), wanted.context);
	if (fault !== null) Object.assign(errors, contextErrors(fault));
	if (template === null) Object.assign(errors, wrong);
	else if (isWrong) Object.assign(errors, { template_unique_id: Object.values(wrong).flat() });
	Object.assign(errors, cidErrors(content));
	if (Object.keys(errors).length > 0) throw invalid(errors);
	return { content, content_sha256: contentSha256(content), variables: usedVariables(content) };
}

export function submissionOf<Resolved extends object>(
	send: Pick<
		CheckedSend,
		'type' | 'envelope' | 'from_key' | 'tag' | 'disable_tracking' | 'list_id' | 'context'
	>,
	resolved: Resolved,
	made: { id: Uuid; now: Micros },
) {
	const { type, envelope, from_key, tag, disable_tracking, list_id, context } = send;
	const tracking: Tracking = disable_tracking ? 'off' : 'on';
	return { ...made, type, envelope, from_key, tag, tracking, list_id, context, ...resolved };
}

/** Stores only the subject: the remote service resolves the template, and the stored request has the bodies. */
export function opaqueContent(
	wanted: Pick<Wanted, 'subject' | 'text_body' | 'html_body' | 'template_unique_id' | 'disable_inline'>,
): Omit<ResolvedContent, 'variables'> & { variables: readonly string[] | null } {
	const { subject, text_body: text, html_body: html, template_unique_id, disable_inline } = wanted;
	const content = { subject: subject ?? '', text: null, html: null, disable_inline };
	const variables = template_unique_id === null ? usedVariables({ ...content, text, html }) : null;
	return { content, content_sha256: contentSha256(content), variables };
}

export async function bodyErrors(bodies: {
	text_body?: string | null;
	html_body?: string | null;
}): Promise<FieldErrors> {
	const errors: FieldErrors = {};
	for (const field of ['text_body', 'html_body'] as const) {
		const body = bodies[field] ?? '';
		const wrong: FieldError[] = [];
		if (hasTooMany(body))
			wrong.push({
				code: 'too_many_variables',
				message: 'Ensure the body has no more than 20,000 variables.',
			});
		if (field === 'html_body' && body !== '') {
			const { isTooDeep, maxNesting } = await import('../content/nesting.js');
			const message = `Ensure the HTML is nested no deeper than ${maxNesting} elements.`;
			if (isTooDeep(body)) wrong.push({ code: 'too_deep', message });
		}
		if (wrong.length > 0) errors[field] = wrong;
	}
	return errors;
}

/** A server takes long to fill in more than 20,000 variables. */
function hasTooMany(body: string): boolean {
	const pattern = referencePattern();
	for (let count = 0; pattern.test(body); ) if (++count > 20_000) return true;
	return false;
}

function cidErrors({ html, attachments = [] }: Content): FieldErrors {
	const [first] = attachments.length === 0 ? [] : cidFaults(html, attachments).unclear;
	if (first === undefined) return {};
	return {
		attachments: [
			{ code: 'unique', message: `The HTML refers to cid:${first}, and several files have that id.` },
		],
	};
}

export async function refusalBeside(
	context: Pick<EngineContext, 'store'>,
	{ errors, good }: { errors: FieldErrors; good: StoredParts },
): Promise<ApiError> {
	const beside = await lookUp(context, good);
	return invalid({ ...errors, ...beside.errors });
}

async function lookUp(
	{ store }: Pick<EngineContext, 'store'>,
	{ from_key, type, template_unique_id = null, list_id = null }: StoredParts,
): Promise<{ errors: FieldErrors; template: Template | null }> {
	const [template, sender, list, settings] = await Promise.all([
		template_unique_id === null ? null : store.reads.getTemplate({ id: template_unique_id }),
		from_key === undefined ? null : store.reads.findSender({ email_key: from_key }),
		list_id === null ? null : store.reads.getList({ id: list_id }),
		readSettings(store),
	]);
	const leadsNowhere = type === 'BULK' && settings.publicUrl === null && !isLoopbackUrl(settings.smtpUrl);
	const errors = {
		...(from_key !== undefined && sender === null && unverifiedSender),
		...(template_unique_id !== null && template === null && unknownTemplate),
		...(list_id !== null && list === null && noSuch('list_id', list_id)),
		...(leadsNowhere && needsPublicUrl),
	};
	return { errors, template };
}

const unknownTemplate: FieldErrors = {
	template_unique_id: [{ code: 'does_not_exist', message: 'Template not found.' }],
};
const needsPublicUrl: FieldErrors = { type: [refusal('public_url_required')] };

export function idempotencyKey(request: object, call: Call | undefined): IdempotencyKey | null {
	if (call?.idempotencyKey === undefined) return null;
	const fingerprint = createHash('sha256').update(canonicalJson(request)).digest('hex');
	return { scope: call.client ?? '', key: call.idempotencyKey, fingerprint };
}

export function keyConflict(): ApiError {
	return new ApiError('unprocessable', 'This Idempotency-Key was used for another request.');
}

function emptyAsNull(text: string): string | null {
	return text === '' ? null : text;
}

export function createAttachments({ store, clock }: EngineContext): Attachments {
	return {
		find: async (sha256, call) => {
			if (!isSha256(sha256)) throw notFound();
			return found(await store.reads.findAttachment({ sha256, now: clock.now(), ...seenBy(call) }));
		},
		put: async (sha256, bytes, call) => {
			const fault = sizeFault([bytes.length]);
			if (fault !== null) throw invalid(fault);
			if (createHash('sha256').update(bytes).digest('hex') !== sha256) throw otherBytes();
			const owner = call?.client === undefined ? {} : { owner: call.client };
			const stored = await store.writes.putAttachment({ sha256, bytes, now: clock.now(), ...owner });
			if (stored === null)
				throw new ApiError('conflict', 'Too many unused uploads: send them in a message, or wait 24 hours.');
			return stored;
		},
	};
}
