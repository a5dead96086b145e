import { type Micros, microsPerMs } from '../../api/datetime.js';

export function describeCertificates(text: string, now: Micros): string | null {
	const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g);
	if (blocks === null) return null;
	const described = blocks.map((pem) => describe(pem, now));
	return `${blocks.length === 1 ? 'certificate' : `${blocks.length} certificates:`} ${described.join('; ')}`;
}

function describe(pem: string, now: Micros): string {
	// The build loads `node:crypto` for its functions only, and this is a class.
	const { X509Certificate } = process.getBuiltinModule('node:crypto');
	const { subject, validTo } = new X509Certificate(pem);
	const parts = subject.split('\n');
	const name = parts.find((part) => part.startsWith('CN=')) ?? parts.join(', ');
	const end = new Date(validTo);
	const day = end.toISOString().slice(0, 10);
	return end.getTime() * microsPerMs < now ? `${name}, expired on ${day}` : `${name}, until ${day}`;
}
