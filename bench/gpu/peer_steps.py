"""Steps of scripts/gpu that time others on the same work - cuDNN and cuBLASLt opened directly, PyTorch -, and the tables beside
them. A dry run goes the same way over stand-ins (stand_ins.py)."""

import stand_ins
from runner import Step

# The smallest layers that have one of each kind.
DRY_LAYERS = """name,n,c,h,w,k,r,s,stride_h,stride_w,pad_h,pad_w,dil_h,dil_w,groups,kind
square,1,8,6,6,8,3,3,1,1,1,1,1,1,1,conv
strided,1,3,8,8,8,7,7,2,2,3,3,1,1,1,conv
grouped,1,8,6,6,8,3,3,1,1,1,1,2,2,4,conv
pointwise,1,16,4,4,8,1,1,1,1,0,0,1,1,1,conv
product,1,16,4,4,8,1,1,1,1,0,0,1,1,1,gemm
"""
SPARE = 8  # seconds of a step's limit in which a time that was begun ends


class PeerSteps:
    """Part of phases.Plan."""

    def no_torch(self):
        """Why PyTorch is not asked."""
        if self.dry:
            return "" if self.stand_in_python() else "no python3 here has NumPy, which the stand-in for PyTorch needs"
        found = __import__("importlib.util").util.find_spec("torch")
        return "" if found else "this python3 has no PyTorch"

    def stand_in_python(self):
        if self.numpy_python is None:
            travels = (self.root / "tests" / "fake_peers" / "python" / "torch").is_dir()
            self.numpy_python = stand_ins.python_with_numpy(self.root, self.python) if travels else ""
        return self.numpy_python

    def no_library(self):
        """Why NVIDIA's libraries are not asked; of a dry run, why their stand-ins are not."""
        if "cuda" not in self.devices:
            return "it is for --device cuda"
        if self.dry and self.not_compiled is None:
            self.not_compiled = stand_ins.compile_all(self.root, self.made / "stand_ins")
        return self.not_compiled or ""

    def peer_command(self, peer):
        """What starts scripts/gpu_peers.py, over stand-ins in a dry run."""
        script = self.root / "scripts" / "gpu_peers.py"
        if not self.dry:
            return [self.python, script]
        if peer == "torch" and not self.no_torch():
            return ["env", f"PYTHONPATH={self.root / 'tests' / 'fake_peers' / 'python'}", self.stand_in_python(), script]
        return ["env", f"SPARKLE_PEER_LIBRARIES={self.made / 'stand_ins'}", self.python, script]

    def peer_layers(self, path):
        if not self.dry:
            return path
        small = self.folder / f"dry_{path.stem}.csv"
        small.write_text(DRY_LAYERS, encoding="utf-8")
        return small

    def peers_step(self, name, what, seconds, peer="torch"):
        """A peer's times. Where a dry run has no stand-in for PyTorch, made-up ones: the tables are tried all the same."""
        label = f"peers_{name}" if peer == "torch" else f"{peer}_{name}"
        result = f"{label}.json" if peer == "torch" else f"peers_{label}.json"
        skip = self.no_torch() if peer == "torch" else self.no_library()
        more = ["--made-up"] if self.dry and skip and peer == "torch" else []
        limit = [] if self.dry else ["--seconds", str(seconds - SPARE)]
        command = [*self.peer_command(peer), "time", "--peer", peer, *what, *limit, "--output", self.folder / result, *more]
        return result, Step(label, command, seconds, result, "" if more else skip)

    def lists(self):
        return [("kernels", self.root / "shapes" / "gpu.csv"), *(("layers", self.batched(n)) for n in (32, 256))]

    def peers(self):
        all_of = self.folder.parent
        for phase, path in self.lists():
            _, step = self.peers_step(path.stem, ["--layers", self.peer_layers(path)], 80)
            yield step
            yield from self.tables(f"{phase}_{path.stem}", all_of / phase, path.stem)
        whole = ["--whole", "1", "--whole-size", "32", "--ways", "bf16,tf32"] if self.dry else ["--whole", "1,32"]
        _, step = self.peers_step("networks", ["--layers", *whole], 60)
        yield step
        yield from self.tables("networks", all_of / "networks", "networks")
        yield from self.video_peer(all_of)

    def libraries(self):
        """cuDNN and cuBLASLt by themselves, each layer by the best of what they list."""
        for phase, path in self.lists():
            layers = ["--layers", self.peer_layers(path)]
            large = "n256" in path.stem
            for peer, seconds in (("cudnn", 150 if large else 130), ("cublaslt", 40)):
                search = ["--search-seconds", "0.05" if self.dry else "0.6"]
                _, step = self.peers_step(path.stem, [*layers, *search], seconds, peer)
                yield step
            yield from self.tables(f"{phase}_{path.stem}", self.folder.parent / phase, path.stem)

    def tables(self, name, ours, stem):
        """Ours beside whatever peer has times of this list, in this phase or in another one."""
        files = [f"peers_{peer}{stem}.json" for peer in ("", "cudnn_", "cublaslt_")]
        own = [self.folder / file for file in files if (self.folder / file).exists()]
        others = [self.folder.parent / phase / file for phase in ("libraries", "peers", "short") for file in files]
        there = [*own, *(path for path in others if path.exists() and path.parent != self.folder)]
        for device in self.devices:
            yield self.table(device, name, ours / device, there or [self.folder / files[0]])

    def table(self, device, name, ours, peers):
        script = self.root / "scripts" / "gpu_peers.py"
        skip = "" if ours.exists() else f"'{ours}' holds no times of ours: run that phase first"
        command = [self.python, script, "table", "--ours", ours, "--peers", *peers]
        return Step(f"table_{device}_{name}", command, 5, skip=skip)

    def resnet50_peer(self):
        """PyTorch's whole ResNet-50 in 16 bits, channels last, one CUDA graph a pass, on the batches that ours had; and the
        table of both."""
        small = ["--whole-size", "32"] if self.dry else []
        what = ["--layers", "--whole", ",".join(map(str, self.batches())), *small, "--ways", "bf16,f16"]
        result, step = self.peers_step("resnet50", what, 36)
        yield step
        for device in self.devices:
            yield self.table(device, "resnet50", self.folder / device, [self.folder / result])

    def video_peer(self, all_of):
        """The video UNet by PyTorch, and whether both engines computed the same network."""
        self.find_make()
        skip = self.no_torch() or self.no_video()
        sizes = self.video_sizes()
        # In fp32 it writes what is compared below.
        what = ["--layers", "--video-unet", "x".join(map(str, sizes)), "--ways", "bf16,f32,f16,tf32"]
        result, step = self.peers_step("video_unet", what, 60)
        if not step.skip and "--made-up" not in step.command:
            step.skip = skip
        yield step
        network, step = self.make_video("fp32", skip)
        yield step
        inputs = [self.folder / f"video_unet_{name}.npy" for name in ("frame", "previous", "time")]
        out = self.folder / "video_unet"
        command = [self.sparkle, "run", network, *inputs, "--device", "cuda", "--output", out]
        yield Step("video_unet_run", command, 40, skip=skip)
        files = [out / "next.npy", self.folder / "video_unet_next.npy"]
        python = self.stand_in_python() if self.dry else self.python
        yield Step("video_unet_same", [python, self.root / "scripts" / "gpu_peers.py", "same", *files], 20, skip=skip)
        yield self.drop_video(skip)
        table = self.table("cuda", "video_unet", all_of / "networks" / "cuda", [self.folder / result])
        table.skip = skip or table.skip
        yield table

    def short_libraries(self, names, more):
        """cuDNN on the layers with these in their names and few channels, and in bf16 on those of another list."""
        layers = ["--layers", self.peer_layers(self.root / "shapes" / "gpu.csv"), *self.filters(*names, "few_")]
        search = ["--search-seconds", "0.05" if self.dry else "0.4"]
        ways = ["--ways", "bf16_fused,bf16_alone,tf32_fused,f16_fused,f32_fused"]
        _, step = self.peers_step("gpu", [*layers, *search, *ways], 45, "cudnn")
        yield step
        layers = ["--layers", self.peer_layers(more)]
        _, step = self.peers_step(more.stem, [*layers, *search, "--ways", "bf16_fused,bf16_alone"], 40, "cudnn")
        yield step
        yield from self.tables(more.stem, self.folder, more.stem)

    def short_torch(self, names, skip):
        """PyTorch on the layers with these in their names and few channels, then on the video UNet."""
        layers = ["--layers", self.peer_layers(self.root / "shapes" / "gpu.csv"), *self.filters(*names, "few_")]
        _, step = self.peers_step("gpu", [*layers, "--ways", "bf16,bf16_fused,f16,f16_fused,tf32"], 25)
        yield step
        yield from self.tables("gpu", self.folder, "gpu")
        sizes = "x".join(map(str, self.video_sizes()))
        result, step = self.peers_step("video_unet", ["--layers", "--video-unet", sizes, "--ways", "bf16"], 25)
        step.skip = step.skip or skip
        yield step
        for device in self.devices[:1]:
            yield self.table(device, "video_unet", self.folder / device, [self.folder / result])

    def filters(self, *names):
        return [] if self.dry else [word for name in names for word in ("--filter", name)]
