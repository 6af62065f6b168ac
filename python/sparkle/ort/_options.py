"""onnxruntime's options: those that Sparkle follows, those that say how another engine works inside and change no result, and
those that ask for something that is not there, of which is warned once."""
import enum
import logging
import operator
import warnings
from typing import Any, Mapping, Optional

from sparkle._arguments import checked
from sparkle._errors import BadInput, NotServed

_warned: set = set()


def warn_once(sentence: str) -> None:
    if sentence not in _warned:
        _warned.add(sentence)
        warnings.warn(sentence, stacklevel=3)  # who set the option, or called


def log_once(sentence: str) -> None:
    """What a session finds as it opens, of which nobody's line is the cause."""
    if sentence not in _warned:
        _warned.add(sentence)
        logging.getLogger("sparkle").warning("%s", sentence)


# Entries that say how another engine works inside; they change nothing here.
_INSIDE = frozenset(
    [f"session.{name}" for name in (
        "allow_released_opsets_only", "debug_layout_transformation", "disable_aot_function_inlining", "disable_prepacking",
        "disable_double_qdq_remover", "disable_quant_qdq", "dynamic_block_base", "enable_cpu_mem_arena", "enable_mem_pattern",
        "enable_quant_qdq_cleanup", "force_spinning_stop", "graph_optimizations_loop_level", "inter_op.allow_spinning",
        "intra_op.allow_spinning", "intra_op_thread_affinities", "qdqisint8allowed", "use_device_allocator_for_initializers",
        "use_env_allocators", "use_ort_model_bytes_directly", "use_ort_model_bytes_for_initializers",
        "use_per_session_threads", "x64quantprecision")]
    + ["mlas.disable_kleidiai", "mlas.enable_gemm_fastmath_arm64_bfloat16", "optimization.disable_specified_optimizers",
       "optimization.enable_cast_chain_elimination", "optimization.enable_gelu_approximation",
       "optimization.minimal_build_optimizations"])
_NO_CPU = "session.disable_cpu_ep_fallback"  # followed


class GraphOptimizationLevel(enum.IntEnum):
    """How much another engine would rewrite; Sparkle always does all it can."""
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Whether another engine would run branches at once; it changes nothing here."""
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """In which order another engine would run nodes; it changes nothing here."""
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Options:
    """Attributes with defaults, no others."""
    _defaults: dict = {}
    _asks: dict = {}  # what a value other than the default asks for, which is not there

    def __init__(self) -> None:
        self.__dict__.update(self._defaults)
        self._entries: dict = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._defaults and not name.startswith("_"):
            raise AttributeError(f"sparkle.ort.{type(self).__name__} has no option '{name}'; it has "
                                 f"{', '.join(self._defaults)}.")
        if name == "intra_op_num_threads":
            value = checked(type(self).__name__, {name: "whole"}, {name: value})[name]
        if name in self._asks and value != self._defaults[name]:
            warn_once(f"{type(self).__name__}.{name} is not followed: {self._asks[name]}.")
        self.__dict__[name] = value


class SessionOptions(_Options):
    """``intra_op_num_threads`` is the number of threads on a CPU, ``log_severity_level`` 3 and above silences what Sparkle
    warns of. Levels of optimisation, arenas and orders of execution are another engine's and change nothing here."""
    _defaults = {"intra_op_num_threads": 0, "inter_op_num_threads": 0,
                 "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
                 "execution_mode": ExecutionMode.ORT_SEQUENTIAL, "execution_order": ExecutionOrder.DEFAULT,
                 "log_severity_level": -1, "log_verbosity_level": 0, "logid": "", "enable_mem_pattern": True,
                 "enable_mem_reuse": True, "enable_cpu_mem_arena": True, "use_deterministic_compute": False,
                 "use_per_session_threads": True, "enable_profiling": False, "profile_file_prefix": "onnxruntime_profile_",
                 "optimized_model_filepath": ""}
    _asks = {"enable_profiling": "sparkle.Session.report() says what each step took",
             "optimized_model_filepath": "sparkle.compile writes a plan with its weights"}

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict = {}       # of axes, by their names
        self._denotations: list = []
        self._providers: list = []

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps the entry. "session.disable_cpu_ep_fallback" is followed; of those that ask for something that is not there a
        session warns, once, as it opens."""
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added. Errors: KeyError."""
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """The axes that the model calls ``name`` have this size: ``get_inputs`` says so and ``run`` takes no other. Errors:
        BadInput for what is no size."""
        try:
            number = operator.index(size)
        except TypeError:
            number = -1
        if number < 0:
            raise BadInput("bad_usage", f"The size of the axes '{name}' is {size!r}; give a whole number, 0 or more.")
        self._sizes[str(name)] = number

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Not followed, which a session says as it opens: axes are known by their names here."""
        self._denotations.append(str(denotation))

    def add_provider(self, name: str, options: Optional[Mapping[str, str]] = None) -> None:
        """A provider, with its ``options``, for sessions that are opened without ``providers``."""
        self._providers.append((name, dict(options or {})))

    def has_providers(self) -> bool:
        """Whether any was added."""
        return bool(self._providers)

    def _forbids_the_cpu(self) -> bool:
        return self._entries.get(_NO_CPU) == "1"

    def _say_what_is_not_followed(self) -> None:
        for key in self._entries:
            if key not in _INSIDE and key != _NO_CPU:
                log_once(f"The session's entry '{key}' is not followed.")
        for denotation in self._denotations:
            log_once(f"add_free_dimension_override_by_denotation('{denotation}', ...) is not followed: give the axis by its "
                     "name, to add_free_dimension_override_by_name.")

    def register_custom_ops_library(self, path: str) -> None:
        """Errors: NotServed, always."""
        raise NotServed("not_served", f"'{path}' holds kernels for another engine; Sparkle takes no libraries of operators.")


class RunOptions(_Options):
    """``terminate`` refuses the run. The others name and log a run, and change nothing here."""
    _defaults = {"log_severity_level": -1, "log_verbosity_level": 0, "logid": "", "terminate": False,
                 "only_execute_path_to_fetches": False, "synchronize_execution_providers": True, "training_mode": False}
    _asks = {"training_mode": "Sparkle runs inference alone"}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps the entry, which changes nothing here: it is logged, once."""
        self._entries[str(key)] = str(value)
        log_once(f"The run's entry '{key}' is not followed.")

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was added. Errors: KeyError."""
        return self._entries[key]
