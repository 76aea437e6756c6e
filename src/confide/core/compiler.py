"""torch.compile where it pays: one compiled function for each method and kind of input, whatever the batch size."""

import types
import warnings
from collections.abc import Hashable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from confide.core.errors import CompilerWarning
from confide.core.fused import Method, Run, unrolls

# In elements of the logits. Compiling takes seconds, so it waits until a loop shows itself, or a tensor is so large
# that one eager step hurts (several times the time and memory); the tiniest are as quick without.
TINY, LARGE, LOOP = 1 << 10, 1 << 17, 10
SERIAL = 1 << 15  # below, a second thread costs more than it brings, above all on a busy machine

_compiled: dict[Hashable, "_Compiled"] = {}


def pays(z: Tensor, calls: int) -> bool:
    """Whether to compile for these logits at this call of a criterion."""
    size = z.numel()
    return size >= LARGE or (size >= TINY and calls > LOOP)


def traced() -> bool:
    """Whether this call is being compiled or transformed, so that nothing may be decided by looking at values."""
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def compiled(run: Run, method: Method, z: Tensor, y: Tensor, normalizer: Tensor | None) -> Run:
    """The compiled form of `run`, a function of `core.fused`, for this kind of method and input."""
    size = z.numel() < SERIAL
    key = (run, method.compile_key, normalizer is None, z.dim(), z.shape[1], size, z.dtype, y.dtype, z.device.type)
    entry = _compiled.get(key)
    if entry is None and not _Compiled.broken:
        # Dynamo remembers by name which sizes varied, and would take the number of classes for one of them.
        name = f"{type(method).__name__}_{len(_compiled)}"
        entry = _compiled[key] = _Compiled(run, name, _options(method, z))
    return run if entry is None or entry.gave_up else entry


class _Compiled:
    """A compiled function that falls back to the eager one, with one warning, if it cannot be compiled here."""

    broken = False
    told: ClassVar[set[str]] = set()

    def __init__(self, run: Run, name: str, options: dict[str, Any]) -> None:
        # Dynamo keeps its cache, and the limit after which it silently stops compiling, by code object, and what it
        # has seen to vary by the name of the code: each entry gets its own, or the classes would not stay fixed.
        code = run.__code__.replace(co_name=f"{run.__name__}_of_{name}_{len(_compiled)}")
        self._eager = run
        own = types.FunctionType(code, run.__globals__, code.co_name, run.__defaults__)
        self._fast: Run = torch.compile(own, options=options)
        self._proven = False

    @property
    def gave_up(self) -> bool:
        """Whether it is the eager function by now."""
        return self._fast is self._eager

    def __call__(self, method: Method, z: Tensor, y: Tensor, *more: Any) -> Any:
        return self._fast(method, z, y, *more) if self._proven else self._first(method, z, y, *more)

    def _first(self, method: Method, z: Tensor, y: Tensor, *more: Any) -> Any:
        if not _Compiled.broken:
            try:
                return self._compile(method, z, y, *more)
            except Exception as error:
                result = self._eager(method, z, y, *more)  # an error of the input shows again here
                self._tell(_explain(error))
        else:
            result = self._eager(method, z, y, *more)
        self._fast, self._proven = self._eager, True
        return result

    def _tell(self, what: str) -> None:
        """Warn once. The same failure a second time is no longer about one method: nothing more is tried then."""
        _Compiled.broken = what in _Compiled.told
        if not _Compiled.broken:
            _Compiled.told.add(what)
            warnings.warn(what, CompilerWarning, stacklevel=6)

    def _compile(self, method: Method, z: Tensor, y: Tensor, *more: Any) -> Any:
        for tensor in tree_leaves((z, y, more)):
            _let_vary(tensor, z)
        # Otherwise every call would announce itself to a profiler, which takes a small batch a tenth of its time.
        with torch._dynamo.config.patch(record_runtime_overhead=False):
            result = self._fast(method, z, y, *more)
        self._proven = True
        return result


def _let_vary(tensor: Tensor | None, z: Tensor) -> None:
    """Any number of rows and positions; the number of classes stays fixed."""
    if tensor is not None and tensor.dim() and len(tensor) == len(z):
        torch._dynamo.maybe_mark_dynamic(tensor, [0, tensor.dim() - 1] if z.dim() == 3 else [0])


def _options(method: Method, z: Tensor) -> dict[str, Any]:
    from torch._inductor.custom_graph_pass import CustomGraphPass  # not before a compiler is needed

    class MergeEqual(CustomGraphPass):
        """Compute once what loss, shift and softmax all ask for; the compiler itself does so only in training."""

        def __call__(self, graph: torch.fx.Graph) -> None:
            merge_equal(graph)

        def uuid(self) -> str:
            return "confide.merge_equal.1"

    options: dict[str, Any] = {"post_grad_custom_pre_pass": MergeEqual()}
    ours = type(method).__module__.startswith("confide.")
    if ours and hasattr(torch.compiler, "skip_guard_on_globals_unsafe"):
        # Our functions stay what they are, and small batches save the time to look. A global of others may change.
        options["guard_filter_fn"] = torch.compiler.skip_guard_on_globals_unsafe
    if z.device.type != "cpu":
        return options
    if z.numel() < SERIAL:
        options["cpp.threads"] = 1
    if not unrolls(method, z):
        # Unrolled, reductions over a few classes make the CPU compiler keep whole arrays of intermediate results.
        return options | {"unroll_reductions_threshold": 1}
    # Nothing is stored on the way that can be computed again, so that one loop over the positions remains.
    return options | {
        "unroll_reductions_threshold": z.shape[1] + 1,
        "max_pointwise_cat_inputs": 0,
        "realize_reads_threshold": 24,
        "realize_acc_reads_threshold": 64,
        "realize_opcount_threshold": 300,
    }


def merge_equal(graph: torch.fx.Graph) -> None:
    """Replace every call that repeats an earlier one. Sound here: no call in these graphs draws or mutates."""
    seen: dict[Hashable, torch.fx.Node] = {}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        key = (node.target, _frozen(node.args), _frozen(node.kwargs))
        if key in seen:
            node.replace_all_uses_with(seen[key])
            graph.erase_node(node)
        else:
            seen[key] = node


def _frozen(value: Any) -> Hashable:
    """A call's arguments as a dictionary key; 1, 1.0 and True differ."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple((name, _frozen(part)) for name, part in value.items())
    return type(value), value


def _explain(error: Exception) -> str:
    first = (str(error).strip().splitlines() or [""])[0]
    return (
        f"torch.compile does not work here ({type(error).__name__}: {first}), so losses run on their eager formulas: "
        "same numbers, several times slower. Install a C++ compiler (CPU) or triton (GPU), or pass fused=False"
    )
