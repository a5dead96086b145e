/** A DNS server in this process, over UDP: it answers from its zones, and NXDOMAIN for other names. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

interface Zone {
	TXT?: readonly string[];
	MX?: readonly (readonly [number, string])[];
	A?: readonly string[];
}

export interface NameServer {
	address: string;
	readonly zones: Record<string, Zone>;
	close(): void;
}

const types: Readonly<Record<number, keyof Zone>> = { 1: 'A', 15: 'MX', 16: 'TXT' };

export async function startNameServer(zones: Record<string, Zone> = {}): Promise<NameServer> {
	const socket = createSocket('udp4');
	socket.on('message', (query, { port, address }) => socket.send(answer(query, zones), port, address));
	socket.bind(0, '127.0.0.1');
	await once(socket, 'listening');
	return { address: `127.0.0.1:${socket.address().port}`, zones, close: () => socket.close() };
}

/** Returns an answer: the question, followed by the records (RFC 1035 s.4). */
function answer(query: Buffer, zones: Readonly<Record<string, Zone>>): Buffer {
	const { name, end } = readName(query);
	const type = query.readUInt16BE(end);
	const zone = zoneOf(name.toLowerCase(), zones);
	const found = zone === undefined ? [] : dataOf(zone, types[type]);
	const header = Buffer.alloc(12);
	query.copy(header, 0, 0, 2);
	header.writeUInt16BE(zone === undefined ? 0x8183 : 0x8180, 2);
	header.writeUInt16BE(1, 4);
	header.writeUInt16BE(found.length, 6);
	const records = found.map((data) => {
		const head = Buffer.alloc(12);
		head.writeUInt16BE(0xc00c, 0);
		head.writeUInt16BE(type, 2);
		head.writeUInt16BE(1, 4);
		head.writeUInt32BE(60, 6);
		head.writeUInt16BE(data.length, 10);
		return Buffer.concat([head, data]);
	});
	return Buffer.concat([header, query.subarray(12, end + 4), ...records]);
}

/** A name with other names below it exists (RFC 8020). */
function zoneOf(name: string, zones: Readonly<Record<string, Zone>>): Zone | undefined {
	const isAbove = Object.keys(zones).some((other) => other.endsWith(`.${name}`));
	return zones[name] ?? (isAbove ? {} : undefined);
}

function readName(query: Buffer): { name: string; end: number } {
	const labels: string[] = [];
	let at = 12;
	for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
		labels.push(query.toString('latin1', at + 1, at + 1 + length));
		at += 1 + length;
	}
	return { name: labels.join('.'), end: at + 1 };
}

function dataOf(zone: Zone, type: keyof Zone | undefined): Buffer[] {
	if (type === 'TXT') return (zone.TXT ?? []).map(textData);
	if (type === 'A') return (zone.A ?? []).map((ip) => Buffer.from(ip.split('.').map(Number)));
	if (type !== 'MX') return [];
	return (zone.MX ?? []).map(([preference, host]) =>
		Buffer.concat([Buffer.from([preference >> 8, preference & 0xff]), nameData(host)]),
	);
}

function textData(text: string): Buffer {
	const strings = text.match(/.{1,255}/gs) ?? [''];
	return Buffer.concat(strings.map((part) => Buffer.concat([Buffer.from([part.length]), Buffer.from(part)])));
}

function nameData(host: string): Buffer {
	const labels = host.split('.').filter((label) => label !== '');
	const parts = labels.map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
	return Buffer.concat([...parts, Buffer.from([0])]);
}
