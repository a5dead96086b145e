/** `--ca-cert`: an authority of one's own, looked at before anything is asked of a deployment. */
import { UsageError } from './errors.js';
import type { Sources } from './sources.js';

/** PEM. Throws `UsageError` for what holds no certificate, which TLS would pass over in silence. */
export async function readAuthority(path: string, sources: Sources): Promise<string> {
	const file = sources.file(path, '--ca-cert');
	const text = await file.text();
	// As OpenSSL reads them.
	if (/-----BEGIN (TRUSTED |X509 )?CERTIFICATE-----/.test(text)) return text;
	throw new UsageError(`--ca-cert: ${file.name} holds no certificate`, {
		hint: 'a PEM file has a line -----BEGIN CERTIFICATE-----',
	});
}
