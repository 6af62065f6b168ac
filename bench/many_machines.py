#!/usr/bin/env python3
"""Rows a second of one machine, by each way to have rows answered: one session with all threads, a pipeline, a pool of
processes, Dask, and Ray Data with one worker and with a worker a core, the last four by sparkle.ray.Predictor on clusters of
this machine alone. Rows are random images with a fixed seed; that each way answers each row once and as row by row is checked,
or it fails. The time from nothing to the first answered batch (interpreter, cluster, model) stands apart from the rate, which
counts from when each worker has answered one; CPU time and memory are those of all processes of a way. Medians of rounds in
which the ways take turns.
bench/many_machines.py [MODEL...] [--seconds 2] [--rows N] [--rounds 3] [--batch 32] [--ways A,B] [--sparkle COMMAND]
[--output FILE|auto]: also writes that with its certificate; auto: bench/results/many_machines_MACHINE.json
Run it by a Python that has the package, installed from this tree: build/venv-python/bin/python after `scripts/test python`."""
import argparse
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import certificate

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ROOT.parent / "shared" / "data" / "models"
DEFAULT = [MODELS / name / f"{name}.onnx" for name in ("mnist-cnn", "squeezenet1.1")]
NEEDS = {"dask": "distributed", "ray_one": "ray", "ray_each": "ray"}
SOURCES = ("src", "include", "python", "cmake", "CMakeLists.txt", "pyproject.toml")


def processes_under(root):
    """The process and all that descend from it, as {pid: fields of its stat behind the name}."""
    stats = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                stats[int(entry.name)] = text.rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
    found, added = {}, {root}
    while added:
        found.update({pid: stats[pid] for pid in added if pid in stats})
        added = {pid for pid, fields in stats.items() if int(fields[1]) in found and pid not in found}
    return found


class Watch(threading.Thread):
    """CPU seconds and megabytes of a process and all that descend from it until end(): at once, soon after, and then at each
    quarter of a second, so that what is over sooner was seen too."""

    def __init__(self, root):
        super().__init__()
        self.root, self.seen, self.ended = root, [], threading.Event()
        self.ticks = {}  # of each process that was ever seen
        self.look()
        self.start()

    def run(self):
        pause = 0.02
        while not self.ended.wait(pause):
            pause = min(2 * pause, 0.25)
            self.look()

    def look(self):
        found = processes_under(self.root)
        self.ticks.update({pid: int(fields[11]) + int(fields[12]) for pid, fields in found.items()})
        spent = sum(self.ticks.values()) / os.sysconf("SC_CLK_TCK")
        self.seen.append((time.monotonic(), spent, sum(map(memory_of, found)) / 2**20))

    def end(self):
        self.ended.set()
        self.join()

    def cpu_at(self, moment):
        """Between two looks as if it had been even."""
        before = max((s for s in self.seen if s[0] <= moment), default=self.seen[0])
        after = min((s for s in self.seen if s[0] > moment), default=self.seen[-1])
        share = (moment - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0
        return before[1] + min(max(share, 0), 1) * (after[1] - before[1])

    def most_memory(self, begin, end):
        """Of what was over between two looks, the most that was seen."""
        return max((s[2] for s in self.seen if begin <= s[0] <= end + 0.25), default=0) or max(s[2] for s in self.seen)


def memory_of(pid):
    """Bytes that are the process's own, and its part of what several share; pages of files, which rows are, do not count."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Pss_Anon", "Pss_Shmem")))


def prepared(file, number, a, folder):
    """The model as its ways see it, its rows as a file and their answers row by row."""
    import numpy as np
    import sparkle
    with sparkle.Session(file, "cpu", threads=a.cores) as session:
        if len(session.inputs) != 1 or session.inputs[0].dtype != "float32" or not session.inputs[0].shape:
            sys.exit(f"{file}: it has not one input of float32 with a first axis")
        shape = session.inputs[0].shape
        if not all(isinstance(size, int) for size in shape[1:]):
            sys.exit(f"{file}: it leaves more than its first axis open")
        size = shape[0] if isinstance(shape[0], int) else 1
        random = np.random.default_rng(1)
        some = random.standard_normal((size, *shape[1:]), dtype=np.float32)
        session.run([some])
        runs, begin = 0, time.monotonic()
        while time.monotonic() - begin < 0.3:
            session.run([some])
            runs += 1
        count = a.rows or int(a.seconds * runs * size / (time.monotonic() - begin))
        unit = a.batch * size
        count = max(1, round(count / unit)) * unit
        rows = np.lib.format.open_memmap(folder / f"rows_{number}.npy", "w+", np.float32, (count, *shape[1:]))
        for row in rows:
            row[...] = random.standard_normal(shape[1:], dtype=np.float32)
        right = np.concatenate([session.run([rows[begin:begin + size]])[0] for begin in range(0, count, size)])
        rows.flush()
    return {"name": file.stem, "file": str(file.resolve()), "input": session.inputs[0].name, "count": count,
            "rows": str(folder / f"rows_{number}.npy"), "batch": unit}, right


def check(way, model, right, file):
    """Each row once, and as it was answered by itself."""
    import numpy as np
    with np.load(file) as got:
        ids, answers = got["ids"], got["answers"]
    seen = np.bincount(ids, minlength=model["count"])
    if len(seen) != model["count"] or (seen != 1).any():
        sys.exit(f"{model['name']} by {way}: {int((seen == 0).sum())} rows have no answer, {int((seen > 1).sum())} several")
    off = float(np.max(np.abs(answers - right[ids])) / np.max(np.abs(right)))
    if not off < 1e-4:
        sys.exit(f"{model['name']} by {way}: answers differ by {off:.2g} of the largest")


def run_group(group, spec, rights, folder):
    """One start of a group of ways: a list of what each of its runs took."""
    program = "import sys; from machines import row_ways; row_ways.run(*sys.argv[1:])"
    words = [sys.executable, "-c", program, group, spec["file"], str(folder)]
    path = os.pathsep.join([str(ROOT / "bench"), *filter(None, [os.environ.get("PYTHONPATH")])])
    log = folder / f"{group}.log"
    begin = time.monotonic()
    with open(log, "w", encoding="utf-8") as said:
        process = subprocess.Popen(words, env={**os.environ, "PYTHONPATH": path}, stdout=said, stderr=said)
        watch = Watch(process.pid)
        try:
            status = process.wait(timeout=600)
        finally:
            watch.end()
            if process.poll() is None:
                process.kill()
    if status != 0:
        sys.exit(f"{group}: ended with status {status}\n{log.read_text(encoding='utf-8')[-2000:]}")
    times, found = json.loads((folder / "times.json").read_text(encoding="utf-8")), []
    for run in times["runs"]:
        model = spec["models"][run["model"]]
        check(run["way"], model, rights[run["model"]], folder / f"{run['way']}_{run['model']}.npz")
        if run["rows"] < 1:
            sys.exit(f"{model['name']} by {run['way']}: no row was left once each worker had answered; give more --rows")
        spent = watch.cpu_at(run["last"]) - watch.cpu_at(run["steady"])
        found.append({"model": model["name"], "way": run["way"], "up_s": times["up"] - begin,
                      "start_s": times["up"] - begin + run["first"] - run["begin"],
                      "rows_per_s": run["rows"] / (run["last"] - run["steady"]), "cpu_ms_per_row": 1e3 * spent / run["rows"],
                      "memory_mb": watch.most_memory(run["begin"], run["last"])})
    return found


def not_of_this_tree():
    """Why the package that is measured is not this tree's, in one sentence; nothing where it is."""
    import sparkle
    package = pathlib.Path(sparkle.__file__).parent
    for file in sorted((ROOT / "python" / "sparkle").rglob("*.py")):
        installed = package / file.relative_to(ROOT / "python" / "sparkle")
        if not installed.is_file() or installed.read_bytes() != file.read_bytes():
            return f"the installed package's {installed.name} is not this tree's"
    changed = certificate.git("log", "-1", "--format=%ct", "--", *SOURCES)
    if changed and pathlib.Path(sparkle._core.__file__).stat().st_ctime < int(changed):
        return "the package was installed before the tree's last change"
    return None


def summary(rounds, models, ways):
    """The medians of what the rounds took, a row a model and way, with all rounds beside."""
    rows = []
    for model in models:
        for way in ways:
            runs = [one for one in rounds if (one["model"], one["way"]) == (model["name"], way)]
            row = {"model": model["name"], "way": way, "rows": model["count"], "batch": model["batch"]}
            for key in ("up_s", "start_s", "rows_per_s", "cpu_ms_per_row", "memory_mb"):
                row[key] = statistics.median(run[key] for run in runs)
            rows.append({**row, "runs": [{k: v for k, v in run.items() if k not in ("model", "way")} for run in runs]})
    return rows


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL", help="by default mnist-cnn and squeezenet1.1")
    parser.add_argument("--seconds", type=float, default=2, help="how long one session has with the rows")
    parser.add_argument("--rows", type=int, help="how many, in place of --seconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--ways", help="of session, pipeline, pool, dask, ray_one, ray_each; by default all that are here")
    parser.add_argument("--sparkle", default=str(ROOT / "build" / "release" / "sparkle"), help="the command that certifies")
    parser.add_argument("--output")
    a = parser.parse_args()
    known = [way for ways in row_ways().values() for way in ways]
    missing = [way for way in known if way in NEEDS and importlib.util.find_spec(NEEDS[way]) is None]
    a.missing = [] if a.ways else missing
    a.ways = a.ways.split(",") if a.ways else [way for way in known if way not in missing]
    for way in a.ways:
        if way not in known:
            parser.error(f"there is no way '{way}'; they are {', '.join(known)}")
        if way in missing:
            parser.error(f"the way '{way}' needs the package '{NEEDS[way]}', which is not here")
    if min(a.rounds, a.batch, a.seconds, 1 if a.rows is None else a.rows) <= 0:
        parser.error("--seconds, --rows, --rounds and --batch are more than 0")
    a.cores = len(os.sched_getaffinity(0))
    return a


def row_ways():
    try:
        from machines import row_ways as ways
    except ImportError as error:
        sys.exit(f"{sys.executable} has no Sparkle ({error}); run this by build/venv-python/bin/python")
    return ways.GROUPS


def main():
    a = parsed_arguments()
    problem = not_of_this_tree()
    if problem and a.output == "auto":
        sys.exit(f"no result is kept: {problem}; install it again (scripts/test python)")
    groups = {group: [way for way in ways if way in a.ways] for group, ways in row_ways().items()}
    groups = [(group, ways) for group, ways in groups.items() if ways]
    for way in a.missing:
        print(f"{way}: '{NEEDS[way]}' is not here")
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        models, rights = zip(*(prepared(file, i, a, folder) for i, file in enumerate(a.models or DEFAULT)))
        spec = {"cores": a.cores, "models": models, "file": str(folder / "spec.json")}
        for number in range(a.rounds):
            turn = number % len(groups)
            for group, ways in groups[turn:] + groups[:turn]:
                (folder / "spec.json").write_text(json.dumps({**spec, "ways": ways}), encoding="utf-8")
                for run in run_group(group, spec, rights, folder):
                    rounds.append(run)
                    print(f"{run['model']:<16} {run['way']:<9} first answer after {run['start_s']:6.2f} s, then "
                          f"{run['rows_per_s']:9.1f} rows/s, {run['cpu_ms_per_row']:7.3f} ms of CPU a row, "
                          f"{run['memory_mb']:5.0f} MB", flush=True)
    if a.output:
        versions = {name: importlib.metadata.version(name) for name in sorted({NEEDS[w] for w in a.ways if w in NEEDS})}
        command = certificate.command_of("bench/many_machines.py", sys.argv[1:])
        made = certificate.certificate(shlex.split(a.sparkle), command, versions)
        made["clean"] = made["clean"] and not problem
        file = certificate.RESULTS / f"many_machines_{certificate.label(made)}.json" if a.output == "auto" else a.output
        certificate.store(file, made, {"cores": a.cores, "rounds": a.rounds, "not_here": a.missing,
                                       "rows": summary(rounds, models, a.ways)})


if __name__ == "__main__":
    main()
