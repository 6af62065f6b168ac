"""The verdict on a case. Sparkle is right when each element lies within the bound of the exact value (exact.py); where it does
not, ONNX Runtime is heard: an answer that both give and the evaluator does not is a dispute, as is one where Sparkle sides with
the evaluator and ONNX Runtime does not. Disputes must be among those of disputes.py, each with its reason; others count as
failures."""
from dataclasses import dataclass

import numpy as np

import disputes
from algorithms import extra_error
from engines import Refused, run_peer, run_sparkle
from exact import NoOracle, Value, exact_values, flushed

UNSERVED = ("not_served",)


@dataclass
class Verdict:
    """`outcome`: agrees, refused (not supported), skipped (nothing to compare with), disputed, failed."""
    outcome: str
    detail: str = ""


def difference(actual, values, names, coarse=False):
    """What is wrong with these outputs, or an empty text. `values`: one or more exact answers, of which each element may take
    any. `coarse`: whether the two mean the same; how precise another engine's functions are is not ours to judge."""
    for at, (array, name) in enumerate(zip(actual, names)):
        array = np.asarray(array)
        accepted = [v[name] for v in values]
        if array.dtype != accepted[0].dtype:
            return f"output {at} is {array.dtype}, expected {accepted[0].dtype}"
        if array.shape != accepted[0].value.shape:
            return f"output {at} has shape {array.shape}, expected {accepted[0].value.shape}"
        good = np.zeros(array.shape, bool)
        for value in accepted:
            good |= agrees(array, coarser(value) if coarse else value)
        if not good.all():
            first = np.unravel_index(np.flatnonzero(~good)[0], good.shape)
            v = accepted[0]
            bound = float(np.broadcast_to(v.error, v.value.shape)[first])
            return (f"output {at}: {int((~good).sum())} of {good.size} elements, the first at {tuple(map(int, first))}: "
                    f"{array[first]}, expected {v.value[first]} within {bound:.3g}")
    return ""


def agrees(array, value):
    """Element by element."""
    exact, error = value.value, np.broadcast_to(value.error, value.value.shape)
    if not value.real and not error.any():
        return np.equal(array, exact) | ((array != array) & (exact != exact))
    array = array.astype(np.float64)
    exact = np.asarray(exact).astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(array - exact) <= error
    unbounded = np.isinf(error) & ~np.isnan(exact)
    return near | unbounded | (array == exact) | (np.isnan(array) & np.isnan(exact))


def coarser(value):
    """A thousandth of the largest value."""
    if not value.real:
        return value
    size = np.abs(np.where(np.isfinite(value.value), value.value, 0)).max(initial=0)
    return Value(value.value, np.maximum(value.error, 1e-3 * max(1.0, size)), value.dtype)


def oracle(case, feeds):
    """The exact answers; two where denormals may be taken for zero."""
    extra = extra_error(case.options.algorithm)
    answers = [exact_values(case.model, feeds, extra)]
    zeroed = flushed(case.model, feeds)
    if zeroed is not None:
        answers.append(exact_values(case.model, zeroed, extra))
    return answers


def judge(case, note=lambda stage: None):
    """The verdict; `note` is told which engine is about to run."""
    try:
        note("oracle")
        answers = [oracle(case, feeds) for feeds in case.feeds]
        lacking = ""
    except NoOracle as e:
        answers, lacking = None, str(e)
    note("peer")
    try:
        peer = run_peer(case)
    except Refused as e:
        peer, refusal = None, str(e)
    note("sparkle")
    try:
        ours = run_sparkle(case)
    except Refused as e:
        if e.code in UNSERVED:
            return Verdict("refused", str(e))
        if answers is None and peer is None:
            return Verdict("skipped", "no engine takes it")
        known = disputes.known(case, "refused", str(e))
        return Verdict("disputed", known) if known else Verdict("failed", f"refused as {e.code}: {e}")
    if answers is None:
        if peer is None:
            return Verdict("skipped", lacking)
        return by_peer(case, ours, peer, lacking)
    names = [o.name for o in case.model.graph.output]
    wrong, peer_wrong = "", ""
    for at, answer in enumerate(answers):
        wrong = wrong or difference(ours[at], answer, names)
        if peer is not None:
            peer_wrong = peer_wrong or difference(peer[at], answer, names, coarse=True)
    if not wrong and not peer_wrong:
        return Verdict("agrees", "" if peer is not None else "evaluator alone")
    if not wrong:
        known = disputes.known(case, "reference", peer_wrong)
        return Verdict("disputed", known) if known else Verdict(
            "failed", f"a dispute that disputes.py does not record: ONNX Runtime differs from the evaluator and from Sparkle: "
            f"{peer_wrong}")
    if peer is not None and peer_wrong and all(close_to_peer(o, p, a, names) for o, p, a in zip(ours, peer, answers)):
        known = disputes.known(case, "onnxruntime", wrong)
        return Verdict("disputed", known) if known else Verdict(
            "failed", f"a dispute that disputes.py does not record: Sparkle and ONNX Runtime differ from the evaluator: "
            f"{wrong}")
    side = "no word from ONNX Runtime: " + refusal[:120] if peer is None else "ONNX Runtime sides with neither" if peer_wrong \
        else "ONNX Runtime sides with the evaluator"
    known = disputes.known(case, "sparkle", wrong)
    return Verdict("disputed", known) if known else Verdict("failed", f"{wrong} ({side})")


def close_to_peer(ours, peer, answer, names):
    """Both within the bound of each other, which each may use up once."""
    for o, p, name in zip(ours, peer, names):
        o, p = np.asarray(o), np.asarray(p)
        if o.dtype != p.dtype or o.shape != p.shape:
            return False
        error = answer[0][name].error if o.shape == answer[0][name].value.shape else np.zeros(o.shape)
        with np.errstate(all="ignore"):
            near = np.abs(o.astype(np.float64) - p.astype(np.float64)) <= 2 * np.nan_to_num(error, posinf=0)
        if not (near | (o == p) | ((o != o) & (p != p))).all():
            return False
    return True


def by_peer(case, ours, peer, lacking):
    """Without an evaluator ONNX Runtime alone says what is right, where equality can be asked for: whole numbers, and floats to
    the last two digits of their type."""
    for o, p in zip(ours, peer):
        for at, (x, y) in enumerate(zip(o, p)):
            x, y = np.asarray(x), np.asarray(y)
            if x.dtype != y.dtype or x.shape != y.shape:
                return Verdict("failed", f"output {at} is {x.dtype} {x.shape}, of ONNX Runtime {y.dtype} {y.shape} ({lacking})")
            if x.dtype.kind not in "fc" and not np.array_equal(x, y):
                return Verdict("failed", f"output {at} differs from ONNX Runtime's ({lacking})")
            if x.dtype.kind == "f":
                size = np.abs(np.where(np.isfinite(y), y, 0)).max(initial=0)
                bound = 100 * float(np.finfo(x.dtype).eps) * size
                with np.errstate(all="ignore"):
                    good = (np.abs(x - y) <= bound) | (x == y) | (np.isnan(x) & np.isnan(y))
                if not good.all():
                    return Verdict("failed", f"output {at} differs from ONNX Runtime's beyond {bound:.3g} ({lacking})")
    return Verdict("agrees", f"ONNX Runtime alone: {lacking}")
