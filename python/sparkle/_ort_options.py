"""onnxruntime's options: those that Sparkle follows, those that say how another engine works inside and change no result, and
those that ask for something that is not there, of which is warned once."""
import enum
import warnings
from typing import Any

from sparkle._errors import NotServed

_warned: set = set()


def warn_once(sentence: str) -> None:
    if sentence not in _warned:
        _warned.add(sentence)
        warnings.warn(sentence, stacklevel=3)  # who set the option, or called


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
        if name not in self._defaults and name != "_entries":
            raise AttributeError(f"sparkle.ort.{type(self).__name__} has no option '{name}'; it has "
                                 f"{', '.join(self._defaults)}.")
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

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps the entry, which changes nothing here."""
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added. Errors: KeyError."""
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Nothing needs it: plans are made for the shapes that come."""

    add_free_dimension_override_by_denotation = add_free_dimension_override_by_name

    def register_custom_ops_library(self, path: str) -> None:
        """Errors: NotServed, always."""
        raise NotServed("not_served", f"'{path}' holds kernels for another engine; Sparkle takes no libraries of operators.")


class RunOptions(_Options):
    """``terminate`` refuses the run. The others name and log a run, and change nothing here."""
    _defaults = {"log_severity_level": -1, "log_verbosity_level": 0, "logid": "", "terminate": False,
                 "only_execute_path_to_fetches": False, "synchronize_execution_providers": True, "training_mode": False}
    _asks = {"training_mode": "Sparkle runs inference alone"}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps the entry, which changes nothing here."""
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was added. Errors: KeyError."""
        return self._entries[key]
