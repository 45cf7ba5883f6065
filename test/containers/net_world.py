"""A job whose hosts are namespaces of this machine: own network card, own /opt/ml, own DNS, process 1, and the host name `aws`.

Needs root, unshare and ip; `why_not()` says what is missing.
"""

import contextlib
import functools
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from fake_world import FakeWorld

NETWORK = "10.77.0"
UNSHARE = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child"]
#: Runs as process 1 of a host. The network card comes from outside; `go` says that it is there.
HOST = """
set -e
hostname aws
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount --bind "$BASE" /opt/ml
mount --bind "$BASE/../$NAME.resolv" "$(readlink -f /etc/resolv.conf)"
mount --bind "$BASE/../$NAME.hosts" /etc/hosts
until [ -e "$BASE/../$NAME.go" ]; do sleep 0.05; done
# A bridge's port forwards a second or so after its link is up; what is sent before is lost, and each loss costs a time-out.
until timeout 1 bash -c "exec 3<>/dev/tcp/$NAMESERVER/53" 2> /dev/null; do sleep 0.05; done
cd /
unset NAMESERVER BASE NAME
exec /bin/bash -c 'exec bash "${SAGEMAKER_BASE_DIR:-/opt/ml}/input/data/driver/launch.sh"'
"""


@functools.cache
def why_not() -> str:
    """What this machine lacks; empty when hosts can be made."""
    if os.geteuid() != 0:
        return "needs root for network, mount and UTS namespaces"
    missing = [name for name in ("unshare", "nsenter", "ip", "mount") if shutil.which(name) is None]
    if missing:
        return "needs %s" % ", ".join(missing)
    probe = "ip link add br0 type bridge && ip link add v type veth peer name w && mount -t sysfs sysfs /sys && mount -t proc proc /proc"
    done = subprocess.run([*UNSHARE, "sh", "-c", probe], capture_output=True, text=True, check=False, timeout=60)
    return "" if done.returncode == 0 else "namespaces, bridges or mounts are not permitted here: %s" % done.stderr.strip()[:200]


class Dns:
    """Answers A queries for the job's hosts; a host in `late` has no name for that many queries."""

    def __init__(self, names: dict[str, str], late: dict[str, int], namespace: int) -> None:
        self._names, self._late = names, dict(late)
        self.asked: list[str] = []
        self._socket, self._listening = self._open(namespace)
        threading.Thread(target=self._serve, daemon=True).start()

    def _open(self, namespace: int) -> list[socket.socket]:
        """Sockets inside the switch's network: a short-lived thread enters it, and they stay there. Connecting to the second one proves
        that a host's network works."""
        made: list[socket.socket] = []

        def inside() -> None:
            import ctypes

            with open(f"/proc/{namespace}/ns/net") as entered:
                if ctypes.CDLL(None, use_errno=True).setns(entered.fileno(), 0) != 0:
                    raise OSError("setns")
            opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            opened.bind((f"{NETWORK}.1", 53))
            made.append(opened)
            made.append(socket.create_server((f"{NETWORK}.1", 53), backlog=64))

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        return made

    def _serve(self) -> None:
        while True:
            try:
                query, client = self._socket.recvfrom(512)
            except OSError:
                if self._socket.fileno() < 0:
                    return  # closed
                continue
            with contextlib.suppress(OSError):  # A host that has gone must not end the answers for the others.
                self._socket.sendto(self._answer(query), client)

    def _answer(self, query: bytes) -> bytes:
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        name, question = labels[0], query[12 : at + 5]
        kind = struct.unpack(">H", query[at + 1 : at + 3])[0]
        self.asked.append(name)
        refused = self._late.get(name, 0)
        self._late[name] = max(0, refused - 1)
        known = name in self._names and refused == 0
        answers = b""
        if known and kind == 1:
            address = socket.inet_aton(self._names[name])
            answers = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + address
        flags = 0x8180 if known else 0x8183
        return query[:2] + struct.pack(">HHHHH", flags, 1, 1 if answers else 0, 0, 0) + question + answers

    def close(self) -> None:
        self._socket.close()
        self._listening.close()


def inside(pid: int, *words: str) -> None:
    subprocess.run(["nsenter", "-t", str(pid), "-n", *words], check=True, capture_output=True, timeout=60)


class NetWorld(FakeWorld):
    """FakeWorld with a machine of its own for each host. `late`: how many questions for a name get no answer."""

    def __init__(self, root: Path, hosts: int, job: dict[str, Any], code: dict[str, str], late: "dict[str, int] | None" = None,
                 **more: Any) -> None:  # fmt: skip
        super().__init__(root, hosts, job, code, **more)
        self._late = late or {}
        self._switch: "subprocess.Popen[bytes] | None" = None
        self.dns: "Dns | None" = None
        #: Process 1 of each host, as this machine numbers it.
        self.pids: dict[str, int] = {}
        for host in self.hosts:
            (self.base(host) / "input/config/hosts").unlink()
            config = self.base(host) / "input/config/resourceconfig.json"
            config.write_text(config.read_text().replace('"network_interface_name": "lo"', '"network_interface_name": "eth0"'))

    def start(self, environ: "dict[str, str] | None" = None, only: "list[str] | None" = None) -> None:
        Path("/opt/ml").mkdir(exist_ok=True)
        self._switch = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        switch = self._switch.pid
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{switch}/ns/net") == own:
            time.sleep(0.01)
        # An address of its own: else the bridge takes one of its ports', and loses it to everybody's ARP tables when that host leaves.
        bridge = ("link add br0 address 02:77:00:00:00:01 type bridge", f"addr add {NETWORK}.1/24 dev br0", "link set br0 up")
        for words in (*bridge, "link set lo up"):
            inside(switch, "ip", *words.split())
        addresses = {host: f"{NETWORK}.{number + 10}" for number, host in enumerate(self.hosts)}
        self.dns = Dns(addresses, self._late, switch)
        for host in only or self.hosts:
            self._boot(host, addresses[host], switch, environ or {})

    def _boot(self, host: str, address: str, switch: int, environ: dict[str, str]) -> None:
        beside = lambda end: self.root / f"{host}.{end}"  # noqa: E731
        beside("resolv").write_text(f"nameserver {NETWORK}.1\noptions timeout:2 attempts:5\n")
        beside("hosts").write_text("127.0.0.1 localhost\n")
        temporary = self.root / f"{host}.tmp"
        temporary.mkdir()
        variables = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": os.environ.get("HOME", "/root")}
        variables |= {"TRAINING_JOB_NAME": self.name, "AWS_REGION": "us-west-2", "TMPDIR": str(temporary), "LANG": "C.UTF-8"}
        variables |= {"BASE": str(self.base(host)), "NAME": host, "NAMESERVER": f"{NETWORK}.1"} | environ
        log = (self.base(host) / "log").open("wb")
        process = subprocess.Popen([*UNSHARE, "/bin/bash", "-c", HOST], env=variables, stdout=log, stderr=subprocess.STDOUT)
        self.processes[host] = process
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not children.read_text().split():
            time.sleep(0.01)
        pid = self.pids[host] = int(children.read_text().split()[0])
        card = f"v{len(self.pids)}"
        inside(switch, "ip", "link", "add", card, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        inside(switch, "ip", "link", "set", card, "master", "br0", "up")
        for words in (f"addr add {address}/24 dev eth0", "link set eth0 up", "link set lo up"):
            inside(pid, "ip", *words.split())
        beside("go").touch()

    def send(self, host: str, number: int) -> None:
        """A signal to the driver of a host."""
        os.kill(self.pids[host], number)

    def freeze(self, host: str) -> None:
        """Stops every process of a host."""
        namespace = os.readlink(f"/proc/{self.pids[host]}/ns/pid")
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "ns/pid") == namespace:
                    os.kill(int(entry.name), signal.SIGSTOP)
            except OSError:
                continue

    def unplug(self, host: str) -> None:
        """A host that loses power says nothing: its card goes silent before its processes die."""
        inside(self.pids[host], "ip", "link", "set", "eth0", "down")
        self.send(host, signal.SIGKILL)

    def kill(self) -> None:
        super().kill()
        if self.dns:
            self.dns.close()
        if self._switch:
            self._switch.kill()
            self._switch.wait()
