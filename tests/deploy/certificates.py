"""Authorities and certificates of their own for tests, made by openssl."""

import os
import subprocess


class Authority:
    """Signs certificates for this machine's loopback address and other names, in a directory: NAME.pem and NAME.key."""

    def __init__(self, directory, name="ca"):
        self.directory, self.name = directory, name
        self.path = directory / f"{name}.pem"
        self._openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key",
                      "-out", f"{name}.pem")

    def certify(self, name, dns, days=2):
        """A certificate for a DNS name; `days` below 0: it has expired. Replaces one of this name, each file in one step."""
        self._openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={dns}", "-keyout", f"{name}.key.new", "-out", f"{name}.csr")
        (self.directory / f"{name}.ext").write_text(f"subjectAltName=DNS:{dns},DNS:localhost,IP:127.0.0.1")
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-CA", self.path, "-CAkey", f"{self.name}.key", "-CAcreateserial", "-days",
                      days, "-extfile", f"{name}.ext", "-out", f"{name}.pem.new")
        for kind in ("key", "pem"):
            os.rename(self.directory / f"{name}.{kind}.new", self.directory / f"{name}.{kind}")
        return self.directory / f"{name}.pem", self.directory / f"{name}.key"

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *map(str, arguments)], cwd=self.directory, check=True, capture_output=True)
