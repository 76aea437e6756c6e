"""Post-hoc calibrators, in the order in which a reader would want them in a table."""

from pathlib import Path

from confide.core.errors import InputError
from confide.posthoc import artefact
from confide.posthoc.bbq import BBQ as BBQ
from confide.posthoc.beta import Beta as Beta
from confide.posthoc.calibrator import Calibrator as Calibrator
from confide.posthoc.dirichlet import Dirichlet as Dirichlet
from confide.posthoc.ensemble_temperature import EnsembleTemperature as EnsembleTemperature
from confide.posthoc.histogram_binning import HistogramBinning as HistogramBinning
from confide.posthoc.isotonic_multi import IsotonicMulti as IsotonicMulti
from confide.posthoc.isotonic_ovr import IsotonicOVR as IsotonicOVR
from confide.posthoc.local_temperature import LocalTemperature as LocalTemperature
from confide.posthoc.matrix_scaling import MatrixScaling as MatrixScaling
from confide.posthoc.meta_cal import MetaCal as MetaCal
from confide.posthoc.parameterized_temperature import ParameterizedTemperature as ParameterizedTemperature
from confide.posthoc.platt import Platt as Platt
from confide.posthoc.prior_shift import PriorShift as PriorShift
from confide.posthoc.spline import Spline as Spline
from confide.posthoc.state import expose
from confide.posthoc.temperature import Temperature as Temperature
from confide.posthoc.vector_scaling import VectorScaling as VectorScaling
from confide.posthoc.venn_abers import VennAbers as VennAbers

ALL: tuple[type[Calibrator], ...] = (
    Temperature,
    EnsembleTemperature,
    ParameterizedTemperature,
    LocalTemperature,
    VectorScaling,
    MatrixScaling,
    Dirichlet,
    Platt,
    Beta,
    IsotonicOVR,
    IsotonicMulti,
    VennAbers,
    HistogramBinning,
    BBQ,
    Spline,
    MetaCal,
    PriorShift,
)


def load(path: str | Path) -> Calibrator:
    """A fitted calibrator from a file that `save` wrote."""
    header, parts = artefact.read(Path(path))
    kinds = {kind.__name__: kind for kind in ALL}
    if header["method"] not in kinds:
        raise InputError(f"{str(path)!r} holds a {header['method']}, which this version of confide does not know")
    calibrator = kinds[header["method"]](**header["settings"])
    for name in artefact.FACTS:
        setattr(calibrator, name, header[name.rstrip("_")])
    calibrator.parts_ = parts
    expose(calibrator)
    return calibrator
