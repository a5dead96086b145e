import { shownUrl } from '../../api/quote.js';
import { isWebUrl } from '../../api/schema/url.js';
import { type RecordKind, type TextForm, textForms } from './command.js';
import type { CommandContext } from './context.js';
import { UsageError } from './errors.js';
import type { Missing } from './input.js';

export async function askFor(
	cx: CommandContext,
	{ question, of, choices, check, whyNot, known, many, isSecret }: Missing,
): Promise<string> {
	if (choices !== undefined)
		return cx.choose(
			question,
			choices.map((value) => ({ name: value, value })),
		);
	if (of !== undefined && !isForm(of)) {
		const { choicesOf } = await import('../verbs/choices.js');
		return cx.search(question, await choicesOf(cx, of, known));
	}
	const isNot = of === undefined ? async () => null : await checkOf(of);
	const ask = isSecret ? cx.askSecret : cx.ask;
	return ask(question, {
		check: async (text) => {
			if (text.trim() === '') return 'enter a value';
			const refused = refusalOf(() => check(text));
			if (refused !== null) return refused;
			for (const word of many ? text.trim().split(/\s+/) : [text.trim()]) {
				const reason = await isNot(word);
				if (reason !== null) return reason;
			}
			return (await whyNot?.(cx, text, known)) ?? null;
		},
	});
}

export function refusalOf(check: () => unknown): string | null {
	try {
		check();
		return null;
	} catch (error) {
		if (!(error instanceof UsageError)) throw error;
		const message = error.message.replace(/^--[a-z-]+: /, '');
		return typeof error.hint === 'string' ? `${message}; ${error.hint}` : message;
	}
}

function isForm(of: RecordKind | TextForm): of is TextForm {
	return textForms.some((form) => form === of);
}

export async function checkOf(form: TextForm): Promise<(text: string) => Promise<string | null>> {
	switch (form) {
		case 'address': {
			const { noAddress } = await import('../verbs/address-faults.js');
			return async (text) => noAddress(text);
		}
		case 'url': {
			return async (text) =>
				isWebUrl(text) ? null : `"${shownUrl(text)}" is not a URL such as https://example.com/in`;
		}
		case 'variable': {
			const { variablePattern, reservedNames } = await import('../../api/inputs.js');
			return async (text) => {
				if (reservedNames.has(text)) return `"${text}" is a built-in variable`;
				return variablePattern.test(text)
					? null
					: 'use at most 64 letters A to Z, digits and _, and do not begin with a digit';
			};
		}
		case 'file':
		case 'directory':
		case 'path':
			return (path) => whyNotThere(path, form);
	}
}

async function whyNotThere(path: string, form: 'file' | 'directory' | 'path'): Promise<string | null> {
	const { stat } = await import('node:fs/promises');
	const found = await stat(path).catch(() => null);
	if (found === null) return `${path}: no such ${form === 'directory' ? form : 'file'}`;
	if (form === 'file' && found.isDirectory()) return `${path} is a directory`;
	return form === 'directory' && !found.isDirectory() ? `${path} is not a directory` : null;
}
