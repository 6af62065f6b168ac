"""The ways from rows of a file to answers that bench/many_machines.py compares, each as a program would be written that has
this way alone. `run GROUP SPEC FOLDER` starts what the group of ways needs, runs each of its ways over each model, and writes
ids, answers and times to FOLDER; it is a process of its own, so that all starts from nothing. Rows lie in a file that each
worker reads for itself: what is compared is how workers are started and given work, not how rows travel."""
import json
import os
import pathlib
import time

import numpy as np

import sparkle
import sparkle.ray

GROUPS = {"session": ["session"], "pipeline": ["pipeline"], "pool": ["pool"], "dask": ["dask"], "ray": ["ray_one", "ray_each"]}


class Timed(sparkle.ray.Predictor):
    """A predictor for columns of ids, which reads their rows itself and says when and by whom each batch was answered."""

    def __init__(self, model, threads):
        super().__init__(model["file"], "cpu", threads=threads, preprocess=Reading(model))

    def __call__(self, batch):
        answer = super().__call__(batch)
        output = self.session.outputs[0].name
        count = len(answer["id"])
        return {"id": answer["id"], "answer": answer[output], "at": np.full(count, time.monotonic()),
                "worker": np.full(count, os.getpid())}


class Reading:
    def __init__(self, model):
        self.model, self.rows = model, None

    def __getstate__(self):
        return self.model

    def __setstate__(self, model):
        self.__init__(model)

    def __call__(self, batch):
        if self.rows is None:
            self.rows = np.load(self.model["rows"], mmap_mode="r")
        ids = batch["id"]  # consecutive
        return {"id": ids, self.model["input"]: self.rows[ids[0]:ids[0] + len(ids)]}


def parts_of(model, size):
    count = model["count"]
    return [np.arange(begin, min(begin + size, count)) for begin in range(0, count, size)]


class Session:
    """One process, one session with all threads."""

    def __init__(self, cores):
        self.cores = cores

    def answers(self, model):
        """Yields ids, their answers, when those were there, and by which worker; the latter two may be columns."""
        rows = np.load(model["rows"], mmap_mode="r")
        with sparkle.Session(model["file"], "cpu", threads=self.cores) as session:
            size = session.inputs[0].shape[0]
            size = size if isinstance(size, int) else model["batch"]
            for ids in parts_of(model, size):
                answer = session.run([rows[ids[0]:ids[-1] + 1]])[0]
                yield ids, answer, time.monotonic(), 0

    def close(self):
        pass


class Pipeline(Session):
    """One process, several runs under way."""

    def answers(self, model):
        rows = np.load(model["rows"], mmap_mode="r")
        with sparkle.Session(model["file"], "cpu", threads=self.cores) as session, sparkle.Pipeline(session) as pipeline:
            size = session.inputs[0].shape[0]
            parts = parts_of(model, size if isinstance(size, int) else model["batch"])
            for ids, answer in zip(parts, pipeline.map(rows[ids[0]:ids[-1] + 1] for ids in parts)):
                yield ids, answer[0], time.monotonic(), 0


kept = None  # a worker's predictor


def keep(predictor):
    global kept
    kept = predictor


def answer_of(ids):
    return answer_by(kept, ids)


def answer_by(predictor, ids):
    return tuple(predictor({"id": ids}).values())


class Pool(Session):
    """A process a core, one thread each."""

    def answers(self, model):
        import multiprocessing
        with multiprocessing.get_context("spawn").Pool(self.cores, keep, (Timed(model, 1),)) as pool:
            yield from pool.imap_unordered(answer_of, parts_of(model, model["batch"]))


class Dask(Session):
    """Dask's own cluster of a process a core; the predictor is given to each once."""

    def __init__(self, cores):
        import distributed
        super().__init__(cores)
        self.distributed = distributed
        self.cluster = distributed.LocalCluster(n_workers=cores, threads_per_worker=1, processes=True, dashboard_address=None)
        self.client = distributed.Client(self.cluster)

    def answers(self, model):
        predictor = self.client.scatter(Timed(model, 1), broadcast=True)
        futures = [self.client.submit(answer_by, predictor, ids, pure=False) for ids in parts_of(model, model["batch"])]
        for _, result in self.distributed.as_completed(futures, with_results=True):
            yield result

    def close(self):
        self.client.close()
        self.cluster.close()


class Ray(Session):
    """Ray Data on a cluster of this machine alone: one worker with all threads, or a worker a core with one thread."""

    def __init__(self, cores):
        import logging
        import ray
        import ray.data
        super().__init__(cores)
        self.ray = ray
        logging.getLogger("ray.data").setLevel(logging.WARNING)
        if not ray.is_initialized():
            ray.init(num_cpus=cores, include_dashboard=False, log_to_driver=False, logging_level="error")
        ray.data.DataContext.get_current().enable_progress_bars = False

    def answers(self, model, all_in_one):
        import pyarrow
        workers, threads = (1, self.cores) if all_in_one else (self.cores, 1)
        parts = parts_of(model, max(model["batch"], -(-model["count"] // 32)))  # blocks
        table = self.ray.data.from_arrow([pyarrow.table({"id": ids}) for ids in parts])
        answers = table.map_batches(Timed, fn_constructor_kwargs={"model": model, "threads": threads}, num_cpus=threads,
                                    batch_size=model["batch"], compute=self.ray.data.ActorPoolStrategy(size=workers))
        for block in answers.iter_batches(batch_size=None, prefetch_batches=0):
            yield block["id"], block["answer"], block["at"], block["worker"]

    def close(self):
        self.ray.shutdown()


# (what starts, with which options it answers)
WAYS = {"session": (Session, {}), "pipeline": (Pipeline, {}), "pool": (Pool, {}), "dask": (Dask, {}),
        "ray_one": (Ray, {"all_in_one": True}), "ray_each": (Ray, {"all_in_one": False})}


def run(group, spec, folder):
    spec, folder = json.loads(pathlib.Path(spec).read_text(encoding="utf-8")), pathlib.Path(folder)
    ways = [way for way in GROUPS[group] if way in spec["ways"]]
    opened, done = WAYS[ways[0]][0](spec["cores"]), []
    up = time.monotonic()
    for way in ways:
        for number, model in enumerate(spec["models"]):
            begin = time.monotonic()
            got = list(opened.answers(model, **WAYS[way][1]))
            last = time.monotonic()
            ids, answers, at, worker = (np.concatenate([np.broadcast_to(part[i], (len(part[0]), *np.shape(part[i])[1:]))
                                                        for part in got]) for i in range(4))
            np.savez(folder / f"{way}_{number}.npz", ids=ids, answers=answers)
            steady = max(float(at[worker == w].min()) for w in np.unique(worker))  # each has answered a batch
            done.append({"way": way, "model": number, "begin": begin, "first": float(at.min()), "steady": steady, "last": last,
                         "rows": int((at > steady).sum())})
    opened.close()
    (folder / "times.json").write_text(json.dumps({"up": up, "runs": done}), encoding="utf-8")
