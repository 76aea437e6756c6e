"""The conformance suites, for our losses, metrics and calibrators and for yours.

from confide.testing import LOSS_CHECKS, variants

@pytest.mark.parametrize("check", LOSS_CHECKS, ids=lambda check: check.__name__)
def test_my_loss(check):
    for make in variants(MyLoss):
        check(make)

@pytest.mark.parametrize("check", CALIBRATOR_CHECKS, ids=lambda check: check.__name__)
def test_my_calibrator(check):
    check(MyCalibrator)
"""

from confide.testing.calibrator_checks import MAP_CHECKS
from confide.testing.calibrator_input_checks import INPUT_CHECKS
from confide.testing.engine_checks import ENGINE_CHECKS
from confide.testing.method_checks import METHOD_CHECKS
from confide.testing.metric_checks import METRIC_CHECKS as METRIC_CHECKS
from confide.testing.samples import describe as describe
from confide.testing.samples import variants as variants

LOSS_CHECKS = METHOD_CHECKS + ENGINE_CHECKS
CALIBRATOR_CHECKS = MAP_CHECKS + INPUT_CHECKS
