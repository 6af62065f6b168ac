"""A bare Debian 12 for tests: what debootstrap lays, and Python with venv, but no compiler. It is made once a clone
(build/bare_root.tar), copied for each use, and entered by chroot in a mount namespace of its own: nothing stays mounted."""
import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHIVE = ROOT / "build" / "bare_root.tar"
PACKAGES = "ca-certificates,python3-venv"
CLEAN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
         "DEBIAN_FRONTEND": "noninteractive"}


class NotHere(Exception):
    """Why there can be no bare root on this machine: one sentence."""


def mirror():
    """The mirror of Debian that this machine itself installs from."""
    folder = pathlib.Path("/etc/apt")
    for path in [*sorted(folder.glob("sources.list.d/*")), folder / "sources.list"]:
        text = path.read_text() if path.is_file() else ""
        for block in text.split("\n\n"):
            found = re.search(r"^URIs: *(\S+)", block, re.M)
            if found and re.search(r"^Suites:.*\bbookworm( |$)", block, re.M):
                return found[1]
        if found := re.search(r"^deb (?:\[.*?\] )?(\S+) bookworm ", text, re.M):
            return found[1]
    raise NotHere("apt's sources name no mirror of Debian 12.")


def make_archive():
    if ARCHIVE.exists():
        return
    if os.geteuid() != 0:
        raise NotHere("debootstrap and chroot need root.")
    if shutil.which("debootstrap") is None:
        raise NotHere("debootstrap is not installed (scripts/setup release).")
    folder = ARCHIVE.with_suffix(".folder")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        done = subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", folder, mirror()],
                              capture_output=True, text=True, timeout=1200, check=False)
        if done.returncode != 0:
            raise NotHere(f"debootstrap ended with status {done.returncode}: {done.stdout.strip().splitlines()[-1:]}")
        for useless in ("var/cache/apt/archives", "usr/share/doc", "usr/share/locale"):
            shutil.rmtree(folder / useless, ignore_errors=True)
        (folder / "var/cache/apt/archives/partial").mkdir(parents=True)
        part = ARCHIVE.with_suffix(".part")
        subprocess.run(["tar", "-C", folder, "-cf", part, "."], check=True)
        part.rename(ARCHIVE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Root:
    """A copy of the bare root, gone at the end of `with`."""

    def __init__(self, folder):
        make_archive()
        self.folder = pathlib.Path(folder) / "root"

    def __enter__(self):
        self.folder.mkdir(parents=True)
        subprocess.run(["tar", "-C", self.folder, "-xf", ARCHIVE], check=True)
        if pathlib.Path("/etc/resolv.conf").exists():
            shutil.copy("/etc/resolv.conf", self.folder / "etc/resolv.conf")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def put(self, source, place):
        """Copies a file or folder of this machine into the root."""
        target = self.folder / place.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if pathlib.Path(source).is_dir() else shutil.copy)(source, target)

    def run(self, command, timeout=300, check=True):
        """A shell's command line inside; its result, with texts. Raises AssertionError with both where it fails and `check`."""
        inside = ('mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" && '
                  'exec chroot "$0" bash -euo pipefail -c "$1"')
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", "-c", inside, self.folder, command],
                              env=CLEAN, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"status {done.returncode} of: {command}\n{(done.stdout + done.stderr)[-3000:]}")
        return done
