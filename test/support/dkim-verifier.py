"""Verifies DKIM signatures with dkimpy, or with opendkim-testmsg and a name server started here.

Reads {"verifier", "records", "messages" in base64} from standard input and prints, for each message, whether every
signature on it is valid. For opendkim it must run in separate network and mount namespaces (unshare).
"""
import base64
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading


def dkimpy(records, messages):
    import dkim

    def lookup(name, timeout=5):
        found = records.get(name.decode().rstrip('.').lower())
        return None if found is None else found.encode()

    def verify(message, index):
        try:
            return bool(dkim.DKIM(message).verify(idx=index, dnsfunc=lookup))
        except dkim.DKIMException:
            return False

    def all_good(message):
        count = message.count(b'DKIM-Signature:')
        return count > 0 and all(verify(message, index) for index in range(count))

    return [all_good(message) for message in messages]


def bring_loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        up = 1
        fcntl.ioctl(control, 0x8914, struct.pack('16sh', b'lo', up))


def serve_names(server, records):
    while True:
        question, client = server.recvfrom(4096)
        at, labels = 12, []
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]].decode())
            at += 1 + question[at]
        asked = question[12:at + 5]
        text = records.get('.'.join(labels).lower())
        if text is None:
            server.sendto(question[:2] + struct.pack('>HHHHH', 0x8583, 1, 0, 0, 0) + asked, client)
            continue
        octets = text.encode()
        strings = [octets[first:first + 255] for first in range(0, len(octets), 255)]
        answer = b''.join(bytes([len(string)]) + string for string in strings)
        server.sendto(
            question[:2] + struct.pack('>HHHHH', 0x8580, 1, 1, 0, 0) + asked
            + b'\xc0\x0c' + struct.pack('>HHIH', 16, 1, 60, len(answer)) + answer,
            client,
        )


def opendkim(records, messages):
    bring_loopback_up()
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as resolver:
        resolver.write('nameserver 127.0.0.1\n')
        resolver.flush()
        subprocess.run(['mount', '--bind', resolver.name, '/etc/resolv.conf'], check=True)
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(('127.0.0.1', 53))
        threading.Thread(target=serve_names, args=(server, records), daemon=True).start()
        program = ['opendkim-testmsg']
        return [subprocess.run(program, input=message, capture_output=True).returncode == 0 for message in messages]


os.environ['PATH'] = os.environ.get('PATH', '') + ':/usr/sbin:/sbin'
request = json.load(sys.stdin)
verify_all = {'dkimpy': dkimpy, 'opendkim': opendkim}[request['verifier']]
json.dump(verify_all(request['records'], [base64.b64decode(each) for each in request['messages']]), sys.stdout)
