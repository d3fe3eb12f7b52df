"""PostgreSQL as a fleet's journal: a primary, and standbys of which at least one has each commit on its disk before it is acknowledged."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import urllib.parse

from processes import Program, wait_for

PROGRAMS = pathlib.Path("/usr/lib/postgresql/15/bin")
# The role of the fleet's servers, which may do no more than they need.
USER = "perceptrond"
# What its protocol has where a client asks for a COMMIT, and where that is done.
COMMIT_ASKED, COMMIT_DONE = b"P\0\0\0\x0e\0COMMIT\0", b"C\0\0\0\x0bCOMMIT\0"
# No more than what a test fills, and the fleet's data many times.
DISK_BYTES = 256 << 20


class Server:
    """One PostgreSQL server, which listens at a Unix socket in a directory of its own, and at its host's address if it has one."""

    def __init__(self, directory, settings, host=None):
        self.directory, self.data, self.name = directory, directory / "data", directory.name
        # Where others connect.
        self.host, self.address, self._enter = host, host.address if host else directory, host.enter if host else []
        # A killed one leaves no shared memory that is large: it is in files of its own.
        self._settings = {"cluster_name": self.name, "listen_addresses": host.address if host else "", "unix_socket_directories": directory,
                          "shared_buffers": "16MB", "dynamic_shared_memory_type": "mmap", "max_wal_size": "32MB",
                          # Of connections that break before their clients have set their own.
                          "tcp_keepalives_idle": 10, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 4,
                          # A standby that is copied anew, or follows another primary, finds what it lacks.
                          "wal_keep_size": "64MB", **settings}
        # In the fleet's directory, where logs are looked for.
        self.log = directory.with_suffix(".log")
        self.program = None
        directory.mkdir()
        self._give()

    @property
    def socket(self):
        return self.directory / ".s.PGSQL.5432"

    def _give(self):
        """PostgreSQL refuses root."""
        if os.geteuid() == 0:
            shutil.chown(self.directory, "postgres", "postgres")

    def _command(self, program, *arguments):
        user = ["--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        return [*self._enter, "setpriv", *user, "--pdeathsig=KILL", PROGRAMS / program, *arguments]

    def _run(self, program, *arguments):
        with open(self.log, "ab") as log:
            subprocess.run(self._command(program, *arguments), check=True, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def mount(self):
        """Gives it a small disk of its own. Returns whether that is allowed."""
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", self.directory], capture_output=True, check=False)
        self._give()
        return mounted.returncode == 0

    def create(self):
        self._run("initdb", "--no-sync", "--auth=trust", "--username=test", "--encoding=UTF8", "--locale=C", "--wal-segsize=1", "-D", self.data)
        with open(self.data / "pg_hba.conf", "a", encoding="utf-8") as access:
            access.write("host all,replication all all trust\n")

    def copy(self, primary):
        """Becomes a standby with what this one has, whatever it had before."""
        shutil.rmtree(self.data, ignore_errors=True)
        self._run("pg_basebackup", "--no-sync", "--checkpoint=fast", "-h", primary.address, "-p", "5432", "-U", "test", "-D", self.data)
        (self.data / "standby.signal").touch()

    def launch(self):
        # What a killed one leaves may name a process that is now another.
        for left in (self.data / "postmaster.pid", self.socket.with_name(self.socket.name + ".lock")):
            left.unlink(missing_ok=True)
        settings = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        self.program = Program(self._command("postgres", "-D", self.data, *settings), self.log)

    def start(self):
        self.launch()
        wait_for(f"{self.name} answers", lambda: self.ask("SELECT 1", may_fail=True) == "1")

    def ask(self, sql, may_fail=False):
        """The answer as text; None if there is none."""
        if self.program.process.poll() is not None:
            raise AssertionError(f"{self.name} ended:\n" + self.log.read_text()[-4000:])
        done = subprocess.run([PROGRAMS / "psql", "-XAtq", "-h", self.directory, "-p", "5432", "-U", "test", "-d", "postgres", "-c", sql],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0 and not may_fail:
            raise AssertionError(f"{self.name}: {sql}: {done.stderr}")
        return done.stdout.strip() if done.returncode == 0 else None

    def receive_from(self, primary):
        """Of a standby: where its commits come from; None: no more come once it returns."""
        source = f"host={primary.address} port=5432 user=test" if primary else ""
        self.ask(f"ALTER SYSTEM SET primary_conninfo = '{source}'")
        self.ask("SELECT pg_reload_conf()")
        if primary is None:
            wait_for(f"{self.name} receives nothing", lambda: self.ask("SELECT count(*) FROM pg_stat_wal_receiver") == "0")

    def pause(self):
        """Its processes do nothing until they are resumed. Each has a group of its own."""
        postmaster = self.program.process.pid
        self.program.process.send_signal(signal.SIGSTOP)
        wait_for("the postmaster stands still", lambda: state(postmaster) in "TZ")
        children = self._children()
        for child in children:
            os.kill(child, signal.SIGSTOP)
        wait_for(f"all of {self.name} stands still", lambda: all(state(child) in "TZ" for child in children))
        return children

    def resume(self):
        for child in self._children():
            os.kill(child, signal.SIGCONT)
        self.program.process.send_signal(signal.SIGCONT)

    def _children(self):
        pid = self.program.process.pid
        try:
            return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except FileNotFoundError:
            return []

    def kill(self):
        """Ends all its processes at once."""
        if self.program.process.poll() is None:
            # It starts no others then.
            children = self.pause()
            for child in children:
                os.kill(child, signal.SIGKILL)
            self.program.kill()
            wait_for(f"all of {self.name} is gone", lambda: all(state(child) in "Z" for child in children))
            # The segment that shows that its data is in use outlives its processes. The seventh line of the file has its number.
            for line in (self.data / "postmaster.pid").read_text().splitlines()[6:7]:
                subprocess.run(["ipcrm", "-m", line.split()[1]], check=True)

    @contextlib.contextmanager
    def limited(self):
        """The fleet's role may have no more connections."""
        self.ask(f"ALTER ROLE {USER} CONNECTION LIMIT 0")
        yield
        self.ask(f"ALTER ROLE {USER} CONNECTION LIMIT -1")

    @contextlib.contextmanager
    def occupied(self):
        """Others have all connections that are left, but for those of administrators."""
        with contextlib.ExitStack() as taken:
            while self._connect(taken):
                pass
            yield

    def _connect(self, taken):
        """Connects as the fleet's role. Returns whether that may."""
        connection = taken.enter_context(socket.socket(socket.AF_UNIX))
        connection.connect(str(self.socket))
        words = f"user\0{USER}\0database\0postgres\0\0".encode()
        connection.sendall(struct.pack("!ii", 8 + len(words), 3 << 16) + words)
        with connection.makefile("rb") as messages:
            # Each has a letter and its length. Z: it is ready; E: an error.
            while (kind := messages.read(1)) not in (b"Z", b"E"):
                messages.read(struct.unpack("!i", messages.read(4))[0] - 4)
        return kind == b"Z"


class Database:
    """A primary and its standbys."""

    def __init__(self, directory, hosts):
        names = [f"postgres{i}" for i in range(len(hosts))]
        settings = {}
        if len(hosts) > 1:
            settings = {"synchronous_standby_names": f"ANY 1 ({', '.join(names)})", "wal_retrieve_retry_interval": "100ms"}
        self.servers = [Server(directory / name, settings, host) for name, host in zip(names, hosts)]
        self.primary = self.servers[0]
        self.is_limited = False

    @property
    def standbys(self):
        return [server for server in self.servers if server is not self.primary]

    def uri(self):
        """For the fleet's servers, if they reach all of them directly."""
        hosts = ",".join(urllib.parse.quote(str(server.address), safe="") for server in self.servers)
        return f"postgres://{USER}@/postgres?host={hosts}"

    def start(self):
        if not self.standbys:
            self.is_limited = self.primary.mount()
        self.primary.create()
        self.primary.start()
        for standby in self.standbys:
            self.join(standby)
        self.primary.ask(f"CREATE ROLE {USER} LOGIN; GRANT CREATE ON DATABASE postgres TO {USER}")

    def close(self):
        for server in self.servers:
            if server.program is not None:
                server.kill()
        if self.is_limited:
            subprocess.run(["umount", "--lazy", self.primary.directory], check=True)

    def join(self, standby):
        """Makes a standby of a server, and waits until it receives what is committed."""
        standby.copy(self.primary)
        standby.start()
        self.await_standby(standby)

    def await_standby(self, standby):
        standby.receive_from(self.primary)
        followers = f"SELECT count(*) FROM pg_stat_replication WHERE application_name = '{standby.name}' AND (state, sync_state) = ('streaming', 'quorum')"
        wait_for(f"{standby.name} follows {self.primary.name}", lambda: self.primary.ask(followers) == "1")

    def promote(self):
        """Makes the standby with the most commits the primary, once none receives more of the old one, which it returns."""
        candidates = self.standbys
        for standby in candidates:
            standby.receive_from(None)
        received = "SELECT coalesce(pg_last_wal_receive_lsn(), '0/0') - '0/0'"
        old, self.primary = self.primary, max(candidates, key=lambda standby: int(standby.ask(received)))
        self.primary.ask("SELECT pg_promote(true, 600)")
        wait_for(f"{self.primary.name} is the primary", lambda: self.primary.ask("SELECT pg_is_in_recovery()") == "f")
        for standby in candidates:
            if standby is not self.primary:
                self.await_standby(standby)
        return old

    def fill(self):
        """Leaves no space on the primary's disk. Returns what takes it."""
        assert self.is_limited, "it has no disk of its own"
        filler = self.primary.directory / "filler"
        with open(filler, "wb", buffering=0) as out:
            try:
                while True:
                    out.write(bytes(1 << 12))
            except OSError:
                return filler

    def hold_unsynced(self):
        """What is committed without being synced stays in memory, until something else is synced. Ends with the server."""
        os.kill(int(self.primary.ask("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")), signal.SIGSTOP)

    def save(self, copy):
        """Copies all that it has."""
        self._copy(self.primary.data, copy)

    def restore(self, copy):
        """Puts a copy in its place."""
        self._copy(copy, self.primary.data)

    def _copy(self, source, target):
        self.primary.kill()
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-a", source, target], check=True)
        self.primary.start()


def state(pid):
    """The letter of a process's state, or "" if there is none."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
