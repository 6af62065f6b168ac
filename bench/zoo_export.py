#!/usr/bin/env python3
"""Writes the ONNX files of bench/zoo_list.py: bench/zoo_export.py FOLDER [NAME ...], in an environment with
bench/zoo-requirements.txt. Weights come from a fixed seed; running means and variances are those of one batch of noise, so that
values stay in the range of a trained network. What cannot be exported is told and left out."""
import argparse
import pathlib
import sys
import time
import warnings

import zoo_list


def network(library, name):
    import torch
    torch.manual_seed(7)
    if library == "timm":
        import timm
        from timm.utils import reparameterize_model
        made = timm.create_model(name, pretrained=False, exportable=True)
    else:
        import torchvision.models as models
        make = {"torchvision": models, "segmentation": models.segmentation, "video": models.video}[library]
        words = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
        if library == "segmentation":
            words["weights_backbone"] = None
        made = getattr(make, name)(weights=None, **words)
        reparameterize_model = None
    return made, reparameterize_model


def settle(made, shape):
    """Running statistics of one batch of noise; weights that start as zeros (heads, last layers of blocks) as small ones."""
    import torch
    with torch.no_grad():
        for weights in made.parameters():
            if weights.dim() > 1 and not weights.any():
                weights.normal_(std=0.02)
    norms = [m for m in made.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.train()
        norm.momentum = 1.0
    with torch.no_grad():
        made(torch.randn((2, *shape[1:])))
    for norm in norms:
        norm.eval()


def export(library, name, shape, how, file):
    import torch
    made, fold = network(library, name)
    made.eval()
    settle(made, shape)
    if fold:
        made = fold(made)
    example = torch.randn(shape)
    if library == "segmentation":
        class Out(torch.nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner = inner

            def forward(self, x):
                return self.inner(x)["out"]
        made = Out(made).eval()
    if how == "export":
        program = torch.onnx.export(made, (example,), dynamo=True, verbose=False)
        program.save(str(file))
    else:
        torch.onnx.export(made, (example,), str(file), dynamo=False, opset_version=17)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    a = parser.parse_args()
    warnings.filterwarnings("ignore")
    import torch
    torch.set_num_threads(1)
    a.folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for library, name, shape, how in zoo_list.zoo():
        file = a.folder / f"{name}.onnx"
        if (a.names and name not in a.names) or file.exists():
            continue
        begin = time.monotonic()
        try:
            export(library, name, shape, how, file.with_suffix(".part"))
            file.with_suffix(".part").rename(file)
            print(f"{name}: {how}, {time.monotonic() - begin:.0f} s", flush=True)
        except Exception as wrong:  # whatever an exporter raises: the next one is still wanted
            failed.append(name)
            said = str(wrong).strip().splitlines() or [type(wrong).__name__]
            print(f"FAILED  {name} ({how}): {said[0]}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
