// The mails of the least sender: a template with what differs put in its places, as it is: nothing is quoted or encoded.
import { createCipheriv, createHmac, createPrivateKey, hash, sign } from 'node:crypto';

const secret = Buffer.alloc(32, 7);

/** `signMail` adds a signature in the thread pool; null without a key. */
export function mailsOf(template, key) {
	const compose = compile(template);
	const links = template.match(/#c\d+#/g)?.length ?? 0;
	const mailOf = (message) => {
		const values = { ...message, date: dateOf(Date.now()), ...tokensOf(message.uuid, links) };
		const envelope = `MAIL FROM:<desk@example.org>\r\nRCPT TO:<${message.email}>\r\nDATA\r\n`;
		return { message, values, envelope, text: compose(values) };
	};
	return { mailOf, signMail: key === null ? null : signing(template, createPrivateKey(key)) };
}

let second = { of: 0, text: '' };

/** A function that puts values in the place of `#name#`. */
function compile(text) {
	const pieces = text.split(/#(\w+)#/);
	const code = pieces.map((piece, at) => (at % 2 === 0 ? JSON.stringify(piece) : `values.${piece}`));
	return new Function('values', `return ${code.join(' + ')}`);
}

function dateOf(now) {
	const of = Math.floor(now / 1000);
	if (of !== second.of) second = { of, text: new Date(now).toUTCString().replace('GMT', '+0000') };
	return second.text;
}

/** As the program's: purpose, key and message with their HMAC; that of a link has its number, encrypted, behind it. */
function tokensOf(uuid, links) {
	const [u] = tokenOf('u', uuid);
	if (links === 0) return { u };
	const [c, key] = tokenOf('c', uuid);
	const tokens = { u, o: tokenOf('o', uuid)[0] };
	const blocks = Buffer.alloc(16 * links);
	for (let at = 0; at < links; at++) blocks[16 * at + 1] = at;
	const checks = createCipheriv('aes-128-ecb', key, null).update(blocks);
	for (let at = 0; at < links; at++) {
		checks.copyWithin(16 * at + 2, 16 * at, 16 * at + 4);
		checks.writeUInt16BE(at, 16 * at);
		tokens[`c${at}`] = c + checks.base64urlSlice(16 * at, 16 * at + 6);
	}
	return tokens;
}

function tokenOf(purpose, uuid) {
	const token = Buffer.allocUnsafe(37);
	token.latin1Write(`${purpose}\0\0\0\x01`, 0);
	token.write(uuid.replaceAll('-', ''), 5, 'hex');
	const mac = createHmac('sha256', secret).update(token.subarray(0, 21)).digest();
	mac.copy(token, 21, 0, 16);
	return [token.base64urlSlice(), mac.subarray(16)];
}

/** RSA with relaxed forms (RFC 6376), in the thread pool; the body is in its relaxed form. */
function signing(template, key) {
	const [header, body] = template.split(/\r\n\r\n(.*)/s);
	const fields = header.split(/\r\n(?! )/);
	const names = fields.map((field) => field.slice(0, field.indexOf(':')));
	const begin = `v=1; a=rsa-sha256; c=relaxed/relaxed; d=example.org; s=s1; h=${names.join(':')}; bh=`;
	const relaxed = fields.map((field) =>
		field.replace(/^[^:]+: */, (name) => name.trim().toLowerCase()).replace(/\s+/g, ' '),
	);
	const dataOf = compile(`${relaxed.join('\r\n')}\r\ndkim-signature:${begin}#bh#; b=`);
	const bodyOf = compile(body);
	return (mail, done) => {
		const bh = hash('sha256', bodyOf(mail.values), 'base64');
		const data = Buffer.from(dataOf({ ...mail.values, bh }), 'latin1');
		sign('sha256', data, key, (error, signature) => {
			if (error !== null) throw error;
			const lines = signature.base64Slice().replace(/.{72}/g, '$&\r\n ');
			mail.text = `DKIM-Signature: ${begin}${bh}; b=${lines}\r\n${mail.text}`;
			done(mail);
		});
	};
}
