"""Steps of a phase of scripts/gpu, one after another: each a process group of its own with a limit of its own, so that one
which fails, hangs or takes the device along loses nothing of the others. After every step the phase's archive is written anew
under another name and then renamed: it is complete at any time."""

import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import time

LEAST = 10  # seconds that are worth a beginning
PATIENCE = 20  # seconds for a killed process to be gone
SKIPPED = 77  # exit status of a step that found that it cannot do what it is for; its last line says why


@dataclasses.dataclass
class Step:
    """`command` with its output in NAME.log; `result`: a file that it writes, JSON, by its name within the phase's folder."""

    name: str
    command: list
    seconds: int = 300
    result: str = ""
    skip: str = ""  # why it is not run
    slow: bool = False  # nobody knows how long it takes: one that its limit ends has not failed


class Runner:
    """Runs steps into OUT/PHASE; `budget`: seconds for all of them, 0 for ever. `archives`: another folder for the archive;
    `most`: the bytes that it may have, for which caches are left out, 0 for any."""

    def __init__(self, out, phase, budget=0, environment=None, archives=None, most=0):
        self.out, self.phase, self.folder = pathlib.Path(out), phase, pathlib.Path(out) / phase
        self.archives, self.most, self.without_cache = pathlib.Path(archives or out), most, False
        self.folder.mkdir(parents=True, exist_ok=True)
        # What a driver compiles for a card that the kernels hold no code for goes with our own caches.
        cache = self.out / "cache"
        caches = {"XDG_CACHE_HOME": cache, "CUDA_CACHE_PATH": cache / "nv", "CUDA_CACHE_MAXSIZE": 1 << 31}
        self.environment = {**os.environ, **{name: str(value) for name, value in caches.items()}, **(environment or {})}
        self.end = time.monotonic() + budget if budget else None
        self.rows = []
        self.about = {}
        self.process = None  # of the step that runs

    def end_step(self):
        """Ends the step that runs, and whatever it started; whether it is gone."""
        process, self.process = self.process, None
        if process is None:
            return True
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return False
        return True

    def count(self, verdict):
        return sum(row["verdict"] == verdict for row in self.rows)

    def keep(self, name, verdict, why="", seconds=0.0, command=()):
        """A row of the summary, on disk and in the archive before anything else happens."""
        self.rows.append(
            {"name": name, "verdict": verdict, "why": why, "seconds": round(seconds, 1), "command": list(map(str, command))}
        )
        print(f"{verdict.upper():7} {name:40} {seconds:6.1f} s{'  ' + why if why else ''}", flush=True)
        self.write()

    def write(self):
        summary = {"phase": self.phase, **self.about, "rows": self.rows}
        (self.folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        self.archive()

    def archive(self):
        path, part = self.archives / f"gpu_{self.phase}.tar.gz", self.out / f".gpu_{self.phase}.part"
        self.pack_into(part)
        if self.most and part.stat().st_size > self.most and not self.without_cache and (self.out / "cache").exists():
            sentence = f"caches are left out of '{path.name}', which would take {part.stat().st_size >> 20} MiB with them"
            self.without_cache, self.about["caches"] = True, sentence
            print(f"{'':7} {sentence}", flush=True)
            self.write()
            return
        if self.most and part.stat().st_size > self.most and "size" not in self.about:
            self.about["size"] = f"'{path.name}' takes {part.stat().st_size >> 20} MiB: what brings files back may leave it"
            print(f"{'':7} {self.about['size']}", flush=True)
        # The folder of archives may lie on another file system, and holds nothing that is not whole.
        if self.archives == self.out:
            os.replace(part, path)
            return
        there = path.with_name(f".{path.name}.part")
        shutil.move(part, there)
        os.replace(there, path)

    def pack_into(self, file):
        with tarfile.open(file, "w:gz") as archive:
            for folder in (self.folder, *([] if self.without_cache else [self.out / "cache"])):
                if folder.exists():
                    archive.add(folder, arcname=folder.name)

    def run(self, step):
        """Whether the step passed."""
        if step.skip:
            self.keep(step.name, "skipped", step.skip)
            return False
        left = self.end - time.monotonic() if self.end else step.seconds
        if left < min(step.seconds, LEAST):
            self.keep(step.name, "skipped", "no time is left for it")
            return False
        limit = min(step.seconds, left)
        begin = time.monotonic()
        log = self.folder / f"{step.name}.log"
        with open(log, "wb") as output:
            try:
                self.process = subprocess.Popen(
                    list(map(str, step.command)),
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    env=self.environment,
                    start_new_session=True,
                )
            except OSError as error:
                self.keep(step.name, "failed", f"'{step.command[0]}' cannot be started: {error.strerror}", 0, step.command)
                return False
            try:
                status = self.process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            held = not self.end_step()
        seconds = time.monotonic() - begin
        if status is None and held:
            why = f"it took longer than {limit:.0f} s, and a driver holds it: it could not be killed"
        elif status is None and (limit < step.seconds or step.slow):
            said = "no time was left for it: it was ended" if limit < step.seconds else "it was ended, without a finding,"
            self.keep(step.name, "skipped", f"{said} after {limit:.0f} s", seconds, step.command)
            return False
        elif status == SKIPPED:
            self.keep(step.name, "skipped", self.last_line(log), seconds, step.command)
            return False
        elif status is None:
            why = f"it took longer than {limit:.0f} s and was killed"
        elif status < 0:
            why = f"signal {-status} ended it"
        elif status > 0:
            why = f"status {status}: {self.last_line(log)}"
        else:
            why = self.unreadable(step)
        self.keep(step.name, "failed" if why else "passed", why, seconds, step.command)
        return not why

    def last_line(self, log):
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "it said nothing"

    def remark(self, sentence):
        """What the last row's results say, beside it."""
        self.rows[-1].setdefault("remarks", []).append(sentence)
        print(f"{'':7} {sentence}", flush=True)
        self.write()

    def unreadable(self, step):
        if not step.result:
            return ""
        try:
            json.loads((self.folder / step.result).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            return f"its result '{step.result}' cannot be read: {error}"
        return ""
