/** Parses messages with Python's email package, whose strict policy raises an error for each defect. */
import { expect } from 'vitest';
import { runProgram, runs } from '../support/run-program.js';

const script = `
import base64, email, hashlib, json, sys
from email import policy

def mailboxes(message, name):
    return [[a.display_name, a.addr_spec] for h in message.get_all(name, []) for a in h.addresses]

def read(raw):
    message = email.message_from_bytes(raw, policy=policy.strict)
    leaves = [part for part in message.walk() if not part.is_multipart()]
    defects = [repr(d) for part in message.walk() for d in part.defects]
    defects += [repr(d) for part in message.walk() for key in part.keys() for h in part.get_all(key) for d in getattr(h, 'defects', [])]
    return {
        'defects': defects,
        'subject': str(message['Subject']),
        'date': message['Date'].datetime.timestamp(),
        'message_id': str(message['Message-ID']),
        'mailboxes': {name: mailboxes(message, name) for name in ['From', 'To', 'Cc', 'Reply-To']},
        'fields': [[key, str(value)] for key, value in message.items()],
        'parts': {part.get_content_type(): part.get_content() for part in leaves if part.get_filename() is None},
        'encodings': [str(part['Content-Transfer-Encoding']) for part in leaves],
        'tree': tree(message),
    }

def tree(part):
    named = {'type': part.get_content_type(), 'name': part.get_filename(), 'id': part['Content-ID'] and str(part['Content-ID']), 'how': part.get_content_disposition()}
    if part.is_multipart():
        return {**named, 'parts': [tree(one) for one in part.iter_parts()]}
    return {**named, 'sha256': hashlib.sha256(part.get_payload(decode=True)).hexdigest()}

def answer(text):
    try:
        return read(base64.b64decode(text))
    except Exception as error:
        return {'defects': [repr(error)], 'subject': '', 'date': 0, 'message_id': '', 'mailboxes': {}, 'fields': [], 'parts': {}, 'encodings': [], 'tree': None}

json.dump([answer(text) for text in json.load(sys.stdin)], sys.stdout)
`;

export interface Testimony {
	defects: string[];
	subject: string;
	date: number;
	message_id: string;
	mailboxes: Record<string, [string, string][]>;
	fields: [string, string][];
	parts: Record<string, string>;
	encodings: string[];
	tree: MimeNode | null;
}

export interface MimeNode {
	type: string;
	name: string | null;
	id: string | null;
	how: string | null;
	parts?: MimeNode[];
	sha256?: string;
}

export const hasPython = runs('python3', '-c', 'import email');

export function pythonReads(messages: readonly Buffer[]): Testimony[] {
	const input = JSON.stringify(messages.map((message) => message.toString('base64')));
	const run = runProgram('python3', ['-c', script], { input });
	expect(run.stderr.toString()).toBe('');
	return JSON.parse(run.stdout.toString());
}
