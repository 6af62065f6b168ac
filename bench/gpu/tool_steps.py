"""Steps of scripts/gpu that take a kernel apart: one pattern off at a time, optimisation steps, the tensor pipes' counters, and
compute-sanitizer over every family."""

import shutil

from runner import Step

LAYER = "mb32ic64ih56oc64oh56kh3ph1"
# Layers of a few channels at batch 10,000, as shapes/gpu.csv has them.
FEW = {"few_1x86": "mb10000ic1ih86oc4oh80kh7ph0", "few_4x40": "mb10000ic4ih40oc16oh34kh7ph0"}
# Families with kernels on CUDA, and seconds under memcheck; those whose kernels share memory, and seconds under racecheck.
MEMCHECK = {
    "gemm": 100, "attention": 40, "depthwise": 25, "deform": 12, "pool": 10, "reduce": 10, "softmax": 10, "normalize": 10,
    "copy": 10, "pointwise": 10, "quantize": 10, "resize": 10, "top_k": 10, "gather": 7, "scatter": 7, "pad": 7, "scan": 7,
    "triangle": 7, "rotary": 7, "sample": 7, "non_max": 7,
}
RACECHECK = {
    "gemm": 100, "attention": 40, "depthwise": 20, "deform": 10, "pool": 10, "reduce": 10, "softmax": 12, "normalize": 12,
    "scan": 10, "top_k": 12, "copy": 10,
}


class ToolSteps:
    """Part of phases.Plan."""

    def ablation(self):
        """What each pattern brings, and step by step from plain loops; CUDA's planes of few channels have no patterns to leave
        out."""
        conv = {"": self.tiny(LAYER)}
        few = {f"_{name}": self.tiny(text, "ic1ih12oc4oh6kh7ph0") for name, text in FEW.items()}
        for device in self.devices:
            first, wide = ("bf16" if device == "cuda" else "fp16"), "fp32"
            for precision in (first, wide):
                yield self.bench(device, precision, "ablate", ["--conv", conv[""], "--ablate"], 60)
                yield self.bench(device, precision, "ladder", ["--conv", conv[""], "--ladder"], 60)
            for name, text in few.items() if device == "cuda" else ():
                step = self.bench(device, "fp16", f"ablate{name}", ["--conv", text, "--ablate"], 70)
                step.slow = True  # each form's whole output is checked on the CPU
                yield step
            if device == "cuda":
                text = few["_few_1x86"]
                yield self.bench(device, "tf32", "planes_ladder_few_1x86", ["--conv", text, "--planes", "--ladder"], 60)
        for precision in ("bf16", "fp16", "tf32") if "cuda" in self.devices else ():
            yield self.tensor_pipe(precision)

    def tiny(self, conv, small=None):
        return (small or "ic16ih8oc16oh8kh3ph1") if self.dry else conv

    def tensor_pipe(self, precision):
        ncu = shutil.which("ncu")
        result = f"tensor_pipe_{precision}.json"
        options = self.bench("cuda", precision, "", ["--conv", self.tiny(LAYER)], 0).command
        options = options[options.index("cuda") + 1 : options.index("--output")]
        if self.dry:  # the program's own arguments say how long it takes
            options = options[: options.index("--rounds")]
        script = self.root / "bench" / "gpu" / "tensor_pipe.py"
        command = [self.python, script, ncu, self.sparkle, self.folder / result, *options]
        return Step(f"tensor_pipe_{precision}", command, 35, result, self.missing(ncu, "ncu"), slow=True)

    def sanitize(self):
        """Memory first: of races only kernels that share memory can have any."""
        sanitizer = shutil.which("compute-sanitizer")
        skip = self.missing(sanitizer, "compute-sanitizer")
        script = self.root / "bench" / "gpu" / "sanitize.py"
        for tool, families in (("memcheck", MEMCHECK), ("racecheck", RACECHECK)):
            for family, seconds in families.items():
                command = [self.python, script, sanitizer, tool, self.sparkle, family]
                yield Step(f"cuda_{tool}_{family}", command, seconds, skip=skip, slow=True)

    def missing(self, program, name):
        """Why what asks for this program and CUDA is not run; empty: it is."""
        if "cuda" not in self.devices:
            return "it is for --device cuda"
        return "" if program else f"there is no {name} here"
