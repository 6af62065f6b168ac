#!/usr/bin/env python3
"""The onnxruntime side of the serve protocol of bench/engines.py, a helper process of the measuring tools:
bench/peer_onnxruntime.py --model M --threads T [--input F.pb ...]"""
import argparse
import json
import pathlib
import sys
import time


def peak_bytes(process="self"):
    """The most memory that a process has held so far; of this process if none is named."""
    status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def peer_serve(arguments):
    """The onnxruntime side of the protocol."""
    import onnx
    from onnx import numpy_helper
    begin = time.perf_counter()
    import onnxruntime
    before = peak_bytes()
    if sys.stdin.readline().strip() != "start":
        return
    imported = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(arguments.model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for declared, file in zip(session.get_inputs(), arguments.input):
        binding.bind_cpu_input(declared.name, numpy_helper.to_array(onnx.load_tensor(file)))
    for declared in session.get_outputs():
        binding.bind_output(declared.name, "cpu")
    loaded = time.perf_counter()
    session.run_with_iobinding(binding)
    first = time.perf_counter()
    times = {"load_ms": (loaded - imported) * 1e3, "first_ms": (first - loaded) * 1e3, "import_ms": (imported - begin) * 1e3,
             "import_bytes": before}
    print("ready", json.dumps(times), flush=True)
    for line in sys.stdin:
        verb, _, rest = line.strip().partition(" ")
        if verb == "run":
            taken = []
            for _ in range(int(rest)):
                start = time.perf_counter()
                session.run_with_iobinding(binding)
                taken.append((time.perf_counter() - start) * 1e3)
            print(" ".join(f"{t:.4f}" for t in taken), flush=True)
        elif verb == "save":
            for i, values in enumerate(binding.copy_outputs_to_cpu()):
                (pathlib.Path(rest) / f"output_{i}.pb").write_bytes(numpy_helper.from_array(values).SerializeToString())
            print("saved", flush=True)
        else:
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--input", action="append", default=[])
    peer_serve(parser.parse_args())


if __name__ == "__main__":
    main()
