"""Every error and warning of confide, and one style of message: what was found, where, what to do.

ValueError
  InputError            tensors that cannot mean what the call says
  KnobError             a setting outside its range
  NotFitted             a calibrator is asked before it was fitted (an AttributeError, too, as in scikit-learn)
RuntimeError
  SecondDerivativeError a derivative of the fused gradient was asked for
ImportError
  MissingExtra          an optional dependency is not installed
UserWarning
  CompilerWarning       torch.compile does not work here, the eager formulas are used
  CalibrationWarning    a calibrator could not do what it should with these data
"""


class InputError(ValueError):
    """Tensors that cannot mean what the call says."""


class KnobError(ValueError):
    """A setting outside its range."""


class NotFitted(ValueError, AttributeError):
    """A calibrator is asked before it was fitted."""


class SecondDerivativeError(RuntimeError):
    """A derivative of the fused gradient was asked for."""


class MissingExtra(ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs {package}, not installed here: pip install 'confide[{extra}]'")


class CompilerWarning(UserWarning):
    """torch.compile does not work here, so the eager formulas are used."""


class CalibrationWarning(UserWarning):
    """A calibrator could not do what it should with these data."""
