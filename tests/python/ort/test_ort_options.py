"""What sparkle.ort makes of the providers that are listed, of sizes and of entries, and of what it warns, to the logger."""
import logging
import pathlib
import pickle

import numpy as np
import pytest

import sparkle

MODEL = pathlib.Path(__file__).resolve().parents[3] / "models" / "upscale2x.onnx"


def opened(caplog, *arguments, **options):
    """A session, and what was warned of meanwhile."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "sparkle"):
        session = sparkle.ort.InferenceSession(str(MODEL), *arguments, **options)
    return session, [r.getMessage() for r in caplog.records]


def software_devices():
    return [d for d in sparkle.devices() if d.software and not d.unusable]


def only_software():
    return software_devices() and not any(d.name != "cpu" and not d.software and not d.unusable for d in sparkle.devices())


def test_a_cpu_that_plays_a_gpu_is_no_provider(caplog):
    if not only_software():
        pytest.skip("there is no software device here, or a GPU beside it")
    ort, vulkan, cpu = sparkle.ort, "VulkanExecutionProvider", "CPUExecutionProvider"
    assert ort.get_available_providers() == [cpu] and ort.get_device() == "CPU" and vulkan in ort.get_all_providers()
    session, said = opened(caplog, providers=ort.get_available_providers())
    assert session.get_providers() == [cpu] and session._session.device.name == "cpu" and not said
    for listed in ([vulkan, cpu], [(vulkan, {"device_id": 0}), cpu], ["DmlExecutionProvider"],
                   ["WebGpuExecutionProvider", cpu]):
        session, said = opened(caplog, providers=listed)
        assert session.get_providers() == [cpu] and len(said) == 1
        assert "is a CPU that plays a GPU) here; CPUExecutionProvider runs the model." in said[0]
    session, said = opened(caplog, providers=[vulkan])  # named, and nothing else
    assert session.get_providers() == [vulkan, cpu] and session._session.device.name == "vulkan"
    assert len(said) == 1 and "llvmpipe" in said[0] and "CPUExecutionProvider runs the model faster" in said[0]


def test_the_cpu_takes_the_place_of_what_is_not_here(caplog):
    ort, cpu = sparkle.ort, "CPUExecutionProvider"
    missing = [["Tensor"], ["Tensor", (cpu, {})]]
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        missing += [["CUDAExecutionProvider"], [("CUDAExecutionProvider", {"device_id": 0})],
                    ["TensorrtExecutionProvider", "CUDAExecutionProvider"]]
    for providers in missing:
        session, said = opened(caplog, providers=providers)
        assert session.get_providers() == [cpu] and len(said) == 1
        first = providers[0] if isinstance(providers[0], str) else providers[0][0]
        assert said[0].startswith(f"Sparkle has no provider '{first}'") and said[0].endswith(f" here; {cpu} runs the model.")
        with pytest.raises(sparkle.BadInput, match=f"There is no provider '.+ here; list {cpu}, or allow to fall back"):
            opened(caplog, providers=[p for p in providers if cpu not in p], enable_fallback=0)
        options = ort.SessionOptions()
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        with pytest.raises(sparkle.BadInput, match=f"no provider '{first}'"):
            opened(caplog, options, providers=[p for p in providers if cpu not in p])
    session, _ = opened(caplog)
    session.disable_fallback()
    with pytest.raises(sparkle.BadInput, match="no provider 'Tensor'"):
        session.set_providers(["Tensor"])
    with pytest.raises(sparkle.BadInput, match="device_id of 'CUDAExecutionProvider' is 'a'; give a whole number"):
        opened(caplog, providers=[("CUDAExecutionProvider", {"device_id": "a"})])
    assert opened(caplog, providers=cpu)[0].get_providers() == [cpu]
    assert opened(caplog, providers=[("Tensor", None), (cpu,)])[0].get_providers() == [cpu]
    for wrong in (3, (), (cpu, 3), (cpu, {}, {}), (3, {})):
        with pytest.raises(sparkle.BadInput, match="The provider .+ is neither a name nor a name with a dictionary"):
            opened(caplog, providers=[wrong])
    options = ort.SessionOptions()
    options.add_provider("Tensor", {})
    assert options.has_providers() and "'Tensor'" in opened(caplog, options)[1][0]


def test_sizes_by_the_names_of_axes(caplog):
    ort = sparkle.ort
    session, _ = opened(caplog)
    shape = session.get_inputs()[0].shape
    height = shape[2]
    assert isinstance(height, str)
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name(height, 5)
    options.add_free_dimension_override_by_name("nobody", 3)
    session, said = opened(caplog, options)
    assert session.get_inputs()[0].shape == [*shape[:2], 5, shape[3]]
    assert len(said) == 1 and "no input of the model has an axis 'nobody'; there is '" in said[0]
    x = np.zeros((1, 3, 5, 6), np.float32)
    for again in (session, pickle.loads(pickle.dumps(session))):
        assert again.run(None, {"image": x})[0].shape == (1, 3, 10, 12)
        with pytest.raises(sparkle.BadInput, match=f"'image' has 4 on axis 2, '{height}', which .+ has set to 5"):
            again.run(None, {"image": x[:, :, :4]})
    binding = session.io_binding()
    binding.bind_cpu_input("image", x[:, :, :4].copy())
    binding.bind_output(session.get_outputs()[0].name)
    with pytest.raises(sparkle.BadInput, match="has 4 on axis 2"):
        session.run_with_iobinding(binding)
    with pytest.raises(sparkle.BadInput, match="'N' is 'many'; give a whole number"):
        options.add_free_dimension_override_by_name("N", "many")


def test_entries_that_are_not_followed_are_told_once(caplog):
    options = sparkle.ort.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # another engine's inside
    options.add_session_config_entry("session.of_a_test", "1")
    options.add_free_dimension_override_by_denotation("OF_A_TEST", 1)
    _, said = opened(caplog, options)
    assert len(said) == 2 and said[0] == "The session's entry 'session.of_a_test' is not followed."
    assert "by_denotation('OF_A_TEST', ...) is not followed" in said[1]
    assert opened(caplog, options)[1] == []
    caplog.clear()
    with caplog.at_level(logging.WARNING, "sparkle"):
        for _ in range(2):
            run = sparkle.ort.RunOptions()
            run.add_run_config_entry("of_a_test", "1")
            assert run.get_run_config_entry("of_a_test") == "1"
    assert [r.getMessage() for r in caplog.records] == ["The run's entry 'of_a_test' is not followed."]
