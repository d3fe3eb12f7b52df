"""Identities of a nats-server in operator mode: an operator, accounts and users, with their JWTs. Keys are made and used by openssl.

nkeys: https://github.com/nats-io/nkeys. JWTs: https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/jwt
"""

import base64
import json
import subprocess
import time

OPERATOR, ACCOUNT, USER, SEED = 14 << 3, 0, 20 << 3, 18 << 3


def crc16(data):
    """CRC-16/XMODEM."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def encode(data):
    return base64.b32encode(data + crc16(data).to_bytes(2, "little")).decode().rstrip("=")


def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Identity:
    def __init__(self, directory, name, kind):
        self.name, self.kind = name, kind
        self.key = directory / f"{name}.nkey"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.key], check=True, capture_output=True)

        def der(*options):
            # The key is the last 32 bytes.
            return subprocess.run(["openssl", "pkey", "-in", self.key, "-outform", "DER", *options], check=True, capture_output=True).stdout[-32:]

        self.public = encode(bytes([kind]) + der("-pubout"))
        self.seed = encode(bytes([SEED | kind >> 5, (kind & 31) << 3]) + der())

    def sign(self, subject, claims):
        """The JWT of an identity that this one answers for."""
        body = {"jti": subject.name, "iat": int(time.time()), "iss": self.public, "sub": subject.public, "name": subject.name,
                "nats": {"version": 2, "type": {OPERATOR: "operator", ACCOUNT: "account", USER: "user"}[subject.kind], **claims}}
        text = ".".join(base64url(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, body))
        signed = self.key.with_suffix(".signed")
        signed.write_text(text)
        signature = subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", self.key, "-in", signed], check=True, capture_output=True)
        return f"{text}.{base64url(signature.stdout)}"


class Operator:
    """An operator with one account that has JetStream, and a system account."""

    def __init__(self, directory):
        self.directory = directory
        self.operator = Identity(directory, "operator", OPERATOR)
        self.account = Identity(directory, "account", ACCOUNT)
        self.system = Identity(directory, "system", ACCOUNT)

    def config(self):
        """The part of a nats-server's configuration that replaces accounts."""
        limits = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
        stored = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
        account = self.operator.sign(self.account, {"limits": {**limits, **stored}})
        system = self.operator.sign(self.system, {"limits": limits})
        return (f"operator: {self.operator.sign(self.operator, {})}\nresolver: MEMORY\nsystem_account: {self.system.public}\n"
                f"resolver_preload {{ {self.account.public}: {account}, {self.system.public}: {system} }}\n")

    def creds(self, name, publish, subscribe, key_of=None):
        """A user's .creds file, with the key of another one to make it wrong."""
        user = Identity(self.directory, name, USER)
        permissions = {"pub": {"allow": publish}, "sub": {"allow": subscribe}, "subs": -1, "data": -1, "payload": -1}
        path = self.directory / f"{name}.creds"
        path.write_text(f"-----BEGIN NATS USER JWT-----\n{self.account.sign(user, permissions)}\n------END NATS USER JWT------\n\n"
                        f"-----BEGIN USER NKEY SEED-----\n{(key_of or user).seed}\n------END USER NKEY SEED------\n")
        return path, user
