"""One process of several: run by test_metric_processes.py, which also loads it for what one process alone gives."""

import sys
from functools import partial

import torch
from torch import distributed

from confide import Audit
from confide.core import groups
from confide.metrics import (
    ECE,
    Accuracy,
    AdaptiveECE,
    BalancedAccuracy,
    Brier,
    ClasswiseECE,
    KernelCE,
    LogitStats,
    ThresholdedACE,
)
from confide.testing.metric_checks import pictures

IMAGES = 101
MAKES = (  # one for each kind of sums
    *(Accuracy, BalancedAccuracy, ECE, AdaptiveECE, ClasswiseECE, ThresholdedACE, KernelCE, LogitStats),
    partial(ClasswiseECE, classes=4),
    partial(Brier, bins=15, classes=4),
)


def sampled(rank, world):
    """What torch's DistributedSampler gives a rank: every world-th image, padded with the first; and what counts."""
    places = torch.arange(rank, -(-IMAGES // world) * world, world)
    return places % IMAGES, places < IMAGES


def uneven(rank, world):
    """Three images for the first rank, none for the last, the others share what is left."""
    shares = [0, 3, *torch.linspace(3, IMAGES, world - 1).long().tolist()[1:], IMAGES]
    places = torch.arange(IMAGES)[shares[rank] : shares[rank + 1]] if rank < world - 1 else torch.arange(0)
    return places, torch.ones(len(places), dtype=torch.bool)


def measured(make, places, valid):
    z, y = pictures(IMAGES)
    metric = make()
    for part, real in zip(places.split(13), valid.split(13), strict=True):
        if len(part):
            metric.update(z[part], y[part], valid=real, unit=part // 6)
    return metric


def audited(places, valid):
    z, y = pictures(IMAGES)
    audit = Audit(4)
    sites = ["ab"[int(i) % 2] for i in places]
    audit.update(z[places], y[places], valid=valid, unit=places // 6, groups={"site": sites})
    return audit


def counting(calls):
    """Note the size of every all_reduce."""
    reduce = distributed.all_reduce

    def counted(tensor, *args, **kwargs):
        calls.append(tensor.numel())
        return reduce(tensor, *args, **kwargs)

    groups.distributed.all_reduce = counted


def main(rank, world, store, results):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    calls = []
    counting(calls)
    found = {}
    for number, make in enumerate(MAKES):
        calls.clear()
        whole = measured(make, *sampled(rank, world)).sync()
        found[number] = (whole.stats.tensors(), whole.compute(), repr(whole.estimate()), list(calls))
        if world > 2:
            found[number, "uneven"] = measured(make, *uneven(rank, world)).sync().stats.tensors()
    found["audit"] = audited(*sampled(rank, world)).sync().result()
    if rank == world - 1:
        torch.save(found, results)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
