/** Which variables of a content have no value from anywhere. */

import type { Content } from '../../api/content.js';
import { builtInVariables } from '../../api/fields.js';
import { usedVariables } from '../../content/variable-names.js';
import type { CommandContext } from '../context.js';
import { walk } from '../walk.js';

/** Neither in the context, nor built in, nor a field of subscribers. */
export async function missingVariables(
	cx: CommandContext,
	content: Content,
	context: Readonly<Record<string, string>>,
): Promise<string[]> {
	const open = usedVariables(content).filter(
		(name) => !Object.hasOwn(context, name) && !builtInVariables.some((builtIn) => builtIn === name),
	);
	if (open.length === 0) return [];
	const api = await cx.api();
	const fields = new Set<string>();
	for await (const { variable } of walk(api.fields, {}, { signal: cx.signal })) fields.add(variable);
	return open.filter((name) => !fields.has(name));
}
