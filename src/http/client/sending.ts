/** Sending a message: never twice, unless the deployment knows a repeated key. */
import { randomUUID } from 'node:crypto';
import type { Accepted, Call } from '../../api/api.js';
import type { Capabilities } from '../../api/capabilities.js';
import type { SendRequest } from '../../api/inputs.js';
import type { SendResult } from '../../api/records.js';
import { headerNames } from '../errors.js';
import { decode, every, listOf, record, within } from './decode.js';
import { encodeSend } from './encode.js';
import type { Line } from './line.js';
import { send } from './send.js';

const check = every(
	record({ messages: 'array', result: 'boolean', messages_created: 'count' }),
	within('messages', listOf(record({ to: 'text', id: 'text' }))),
);

/** An answer that is not the contract's is `bad_answer`, and no reason to send again. */
export async function sendMessage(
	line: Line,
	learn: () => Promise<Capabilities>,
	{ request, call }: { request: SendRequest; call: Call | undefined },
): Promise<SendResult> {
	const { service, idempotentSend } = await learn();
	const key = call?.idempotencyKey ?? (idempotentSend ? randomUUID() : null);
	const success = await send(line, {
		operation: 'send',
		body: encodeSend(request, { isOurs: service === 'mailctl' }),
		...(key !== null && { headers: { [headerNames.idempotencyKey]: key } }),
		call,
		isRepeatable: idempotentSend,
	});
	const result = decode<SendResult>(success, check);
	call?.onAccepted?.(acceptedBy(success.answer.headers));
	return result;
}

/** Header names come in lower case. */
function acceptedBy(headers: Readonly<Record<string, string>>): Accepted {
	return {
		campaign: headers[headerNames.campaign.toLowerCase()] ?? null,
		submission: headers[headerNames.submission.toLowerCase()] ?? null,
		replayed: headers[headerNames.idempotencyReplayed.toLowerCase()]?.toLowerCase() === 'true',
	};
}
