"""sparkle.check: plain objects that say something."""
import pathlib

import pytest

import sparkle

MODEL = pathlib.Path(__file__).resolve().parent.parent.parent / "models" / "upscale2x.onnx"
SHAPES = {"image": (1, 3, 96, 128)}


def test_verdicts_by_target(tmp_path):
    checked = sparkle.check(MODEL, ["h200", "avx512"], SHAPES)
    assert checked.model == "upscale2x" and [v.target for v in checked] == ["h200", "avx512"]
    h200 = checked["h200"]
    assert h200.device == "NVIDIA H200" and not h200.calibrated and "bound" in h200.basis
    assert h200.speedup >= 1 and h200.predicted_ms == pytest.approx(sum(layer.predicted_ms for layer in h200.layers))
    assert "wide_type" in {f.code for f in h200.findings}
    assert len(h200.precisions) == 6
    assert "h200" in repr(checked) and "once fixed" in repr(h200) and "wide_type" in repr(h200.findings[0]) + repr(h200.layers)
    assert "<iframe" in checked._repr_html_()
    assert h200.measured_ms is None and all(layer.measured_ms is None for layer in h200.layers)
    checked.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_measured_where_the_device_is_here():
    (cpu,) = sparkle.check(MODEL, "cpu", SHAPES, measure=True, threads=1)
    assert cpu.measured_ms > 0 and all(layer.measured_ms > 0 for layer in cpu.layers)
    assert "measured" in repr(cpu) and "measured" in repr(cpu.layers[0])
    with pytest.raises(sparkle.BadInput, match="'h200' is none"):
        sparkle.check(MODEL, ["cpu", "h200"], SHAPES, measure=True)
    with pytest.raises(sparkle.BadInput, match="threads is -1"):
        sparkle.check(MODEL, "cpu", SHAPES, threads=-1)


def test_what_is_refused():
    with pytest.raises(sparkle.BadInput, match="no description of a device 'z80'"):
        sparkle.check(MODEL, "z80", SHAPES)
    with pytest.raises(sparkle.BadInput, match="give its shape"):
        sparkle.check(MODEL, "h200")
    with pytest.raises(sparkle.BadInput, match="no input 'picture'"):
        sparkle.check(MODEL, "h200", {"picture": (1, 3, 8, 8)})
    with pytest.raises(sparkle.FileUnreadable):
        sparkle.check("missing.onnx", "h200")
