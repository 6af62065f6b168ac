"""Sparkle's times beside the fastest peer's, and which that is."""

import json
import math
import pathlib
import sys

GOALS = {"bf16": " with bias and ReLU (aim: 1.3)", "bf16_alone": " of convolutions alone (aim: 1.0)"}
# What of ours is held against what of theirs: with bias and ReLU where a peer does both in one call, else without ReLU.
WHOLE = " as a whole in "  # in the sentence on a network, which scripts/gpu shows too
PAIRS = {"f32": "layers", "tf32": "matrix", "f16": "half", "bf16": "bfloat", "bf16_alone": "bfloat-alone"}

LEGEND = """ms of ours and of the fastest peer, with its name, and the peer's time over ours: above 1 Sparkle is faster.
Ours: fp32, with matrix units (inputs rounded), stored in fp16 and in bf16, all with bias and ReLU, beside the peers' one call
where there is one; and in bf16 the convolution alone, beside the peers' alone."""


def read_json(path):
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        print(f"gpu_peers: '{path}' is left out: {error}", file=sys.stderr)
        return None


def our_times(folder):
    """Name -> {what: ms} of layers_* (fp32), matrix_* (matrix units allowed), half_*, bfloat_* (in 16 bits), model_*.json."""
    ours = {}
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        what, _, rest = path.stem.partition("_")
        if what not in (*PAIRS.values(), "model"):
            continue
        data = read_json(path)
        if data is None:
            continue
        if what == "model":
            name, _, kind = rest.partition(".")
            total = data.get("total", {})
            if "median_ms" in total:
                plain = data.get("profiling", {}).get("plain_ms") or total["median_ms"]
                ours.setdefault(name, {})[kind or "layers"] = total.get("device_ms") or plain
            continue
        for row in data.get("rows", []):
            if "median_ms" in row and "ladder" not in rest and "ablate" not in rest:
                ours.setdefault(row["name"], {})[what] = row["median_ms"]
    return ours


def fastest(peers, name, way):
    """(ms, peer) of the fastest, of one fused call where any peer has one; None where none has a time."""
    for wanted in (f"{way}_fused", way):
        found = [
            (row[wanted]["median_ms"], peer.get("peer") or "torch")
            for peer in peers
            for row in (peer.get("layers", {}).get(name, {}), peer.get("networks", {}).get(name, {}))
            if "median_ms" in row.get(wanted, {})
        ]
        if found:
            return min(found)
    return None


def describe(peer):
    versions = [f"{key} {peer[key]}" for key in ("torch", "cuda", "cudnn", "cublaslt", "driver") if peer.get(key)]
    return f"{peer.get('peer') or 'torch'} on {peer.get('device')}: {', '.join(versions) or 'no version'}"


def print_table(ours, peers):
    for peer in peers:
        print(describe(peer))
    print(LEGEND)
    print(f"{'layer':28s}" + "".join(f" | {way + ': ours':>16s} {'peer':>10s} {'by':8s} {'x':>6s}" for way in PAIRS))
    shares, whole = {way: [] for way in PAIRS}, []
    number = lambda value, width: f"{value:{width}.4f}"[: width + 2] if value else f"{'-':>{width}s}"
    names = {name for peer in peers for part in ("layers", "networks") for name in peer.get(part, {})}
    for name in sorted(set(ours) | names):
        line = f"{name:28.28s}"
        for way, kind in PAIRS.items():
            own, peer = ours.get(name, {}).get(kind), fastest(peers, name, way)
            share = peer[0] / own if own and peer else None
            if share:
                shares[way].append(share)
            time, by = peer or (None, "")
            if share and any(name in peer.get("networks", {}) for peer in peers):
                whole.append(f"{name}{WHOLE}{way}: {own:.3f} ms of ours, {time:.3f} of {by}, {share:.3f} times as long")
            line += f" | {number(own, 16)} {number(time, 10)} {by:8s} {f'{share:6.3f}' if share else f'{chr(45):>6s}'}"
        print(line)
    for way, values in shares.items():
        if values:
            mean = math.exp(sum(math.log(v) for v in values) / len(values))
            print(f"geometric mean of {way} over ours{GOALS.get(way, '')}: {mean:.3f} ({len(values)} rows)")
    for sentence in whole:
        print(sentence)


def table(arguments):
    ours = our_times(arguments.ours)
    peers = [data for data in map(read_json, arguments.peers) if data]
    if not ours:
        print(f"gpu_peers: '{arguments.ours}' holds no times of Sparkle's.", file=sys.stderr)
    if not ours and not peers:
        return 3
    print_table(ours, peers)
    return 0
