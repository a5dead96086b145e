import { createHash } from 'node:crypto';
import type { Content } from '../api/messages.js';

export function contentSha256(content: Content): string {
	const { subject, text, html, disable_inline, attachments = [] } = content;
	const files = attachments.map(({ name, type, sha256, content_id = null }) => [
		name,
		type,
		sha256,
		content_id,
	]);
	return createHash('sha256')
		.update(JSON.stringify([subject, text, html, disable_inline, ...(files.length > 0 ? [files] : [])]))
		.digest('hex');
}
