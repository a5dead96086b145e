/** Field errors that stored state raises against an input, without a write: also for an input refused for its shape. */
import { emailKey } from '../../api/address.js';
import type { FieldErrors } from '../../api/errors.js';
import { duplicateAddress, notUnique } from '../../engine/rules/errors.js';
import { changeMeta, checkMeta } from '../../engine/rules/meta.js';
import { changeActivation, erasedComplaint } from '../../engine/rules/subscription.js';
import type { Operations } from '../operations.js';
import type { Question } from '../store.js';
import { isErased } from './erasures.js';
import { isVariableTaken, knownVariables } from './fields.js';
import { parseRecord, type SubscriberRow } from './rows.js';
import type { Sql } from './sql.js';
import { findSubscriber, hasAddress } from './subscribers.js';
import { findLasting, findSuppressions } from './suppressions.js';
import { isNameTaken } from './templates.js';

export function createFieldErrors(sql: Sql) {
	return {
		fieldErrors: async (question) => {
			switch (question.kind) {
				case 'subscriber':
					return await ofSubscriber(sql, question);
				case 'field':
					return question.variable !== undefined &&
						(await isVariableTaken(sql, question.variable, question.id ?? 0))
						? notUnique('variable')
						: {};
				case 'template':
					return question.name !== undefined && (await isNameTaken(sql, question.name, question.id ?? ''))
						? notUnique('name')
						: {};
			}
		},
	} satisfies Partial<Operations>;
}

type AboutSubscriber = Extract<Question, { kind: 'subscriber' }>;

async function ofSubscriber(sql: Sql, about: AboutSubscriber): Promise<FieldErrors> {
	const { list_id, id, patch } = about;
	const row = id === null ? null : await findSubscriber(sql, list_id, id);
	const email_key = patch.email === undefined ? row?.email_key : emailKey(patch.email);
	const isMoved = email_key !== undefined && email_key !== row?.email_key;
	return {
		...(isMoved && (await hasAddress(sql, list_id, email_key)) && duplicateAddress),
		...(isMoved && (await isErased(sql, email_key)) && erasedComplaint),
		...(await ofMeta(sql, row, patch)),
		...(row !== null && email_key !== undefined && (await ofActivation(sql, row, { ...about, email_key }))),
	};
}

async function ofMeta(
	sql: Sql,
	row: SubscriberRow | null,
	patch: AboutSubscriber['patch'],
): Promise<FieldErrors | null> {
	if ((patch.meta ?? patch.merge_meta ?? patch.unset_meta) === undefined) return null;
	return checkMeta(changeMeta(row === null ? {} : parseRecord(row.meta), patch), await knownVariables(sql));
}

async function ofActivation(
	sql: Sql,
	row: SubscriberRow,
	{ list_id, patch, now, email_key }: AboutSubscriber & { email_key: string },
): Promise<FieldErrors> {
	const mailTo = { address: email_key, list_id };
	const change = changeActivation({
		stored: { is_active: row.is_active === 1, disable_reason: row.disable_reason },
		wanted: patch.is_active,
		isMoved: email_key !== row.email_key,
		reasons: await findSuppressions(sql, mailTo, now),
		lasting: await findLasting(sql, mailTo),
	});
	return change.kind === 'refused' ? change.errors : {};
}
