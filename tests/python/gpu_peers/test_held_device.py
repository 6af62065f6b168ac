"""scripts/gpu holds the GPU open while its steps run, and goes on where there is none."""

import ctypes
import pathlib
import sys
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench" / "gpu"))

import held_device  # noqa: E402

CALLS = ("cuInit", "cuDeviceGet", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2")


class FakeDriver:
    """Calls by name, in order; `results`: what those that fail return."""

    def __init__(self, mode=0, **results):
        self.mode, self.results, self.said = mode, results, []

    def __getattr__(self, name):
        if name not in CALLS:
            raise AttributeError(name)

        def call(first, *_):
            self.said.append(name)
            if name == "cuDeviceGetAttribute":
                first._obj.value = self.mode
            return self.results.get(name, 0)

        return call


def held_with(driver, monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: driver)
    with held_device.held_device() as held:
        inside = list(driver.said)
    return held, inside


def test_the_context_is_retained_for_the_run_and_released_behind_it(monkeypatch):
    driver = FakeDriver()
    assert held_with(driver, monkeypatch) == (True, list(CALLS[:4]))
    assert driver.said == list(CALLS)


@pytest.mark.parametrize("fails", CALLS[:4])
def test_a_card_that_cannot_be_held_is_left_alone(fails, monkeypatch):
    driver = FakeDriver(**{fails: 100})
    held, said = held_with(driver, monkeypatch)
    assert not held and said[-1] == fails and driver.said == said


@pytest.mark.parametrize("mode", [2, 3])
def test_a_card_for_one_process_is_left_to_the_steps(mode, monkeypatch):
    driver = FakeDriver(mode=mode)
    held, _ = held_with(driver, monkeypatch)
    assert not held and "cuDevicePrimaryCtxRetain" not in driver.said


def test_it_is_released_where_a_step_ends_the_run(monkeypatch):
    driver = FakeDriver()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: driver)
    with pytest.raises(SystemExit), held_device.held_device():
        sys.exit("ended")
    assert driver.said[-1] == CALLS[-1]


def test_no_driver_is_no_matter():
    with held_device.held_device("libcuda_that_is_not_there.so.1") as held:
        assert not held


def test_a_driver_that_hangs_holds_nothing_back(monkeypatch):
    goes_on = threading.Event()
    monkeypatch.setattr(held_device, "release_of", lambda _: goes_on.wait(60) and None)
    with held_device.held_device(patience=0.01) as held:
        assert not held
    goes_on.set()
