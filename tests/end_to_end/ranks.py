"""What every process of `test_ddp.py` does: train beside the others, and compare with one process on all rows."""

import os
import socket

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import confide

RANKS = 4
IGNORED = 9
CLASSES = 5
PARTS = (7, 3, 1, 6)  # rows of each rank
HOPELESS = 1  # the rank whose labels are all ignored, where there is one
WEIGHT = torch.tensor([0.5, 1.0, 2.0, 1.5, 0.25], dtype=torch.float64)
COUPLED = {
    "MDCA": lambda **more: confide.MDCA(strength=3.0, **more),
    "DCA": lambda **more: confide.DCA(strength=3.0, **more),
    "SoftECE": lambda **more: confide.SoftECE(strength=3.0, **more),
}
ROWS = {
    "CrossEntropy": confide.CrossEntropy,
    "MbLS": lambda **more: confide.MbLS(margin=0.5, strength=1.0, **more),
    "ACLS": lambda **more: confide.ACLS(margin=0.5, top=0.5, rest=0.5, **more),
    "Focal": confide.Focal,
    "a sum": lambda **more: confide.MbLS(margin=0.5, **more) + 2 * confide.ACLS(margin=0.0, **more).penalty_only(),
}
TARGETS = ("labels", "one rank ignored", "class weights", "soft")


def start(rank, store):
    """Join the others, by this machine alone."""
    names = [name for _, name in socket.if_nameindex()]
    os.environ["GLOO_SOCKET_IFNAME"] = next(name for name in names if name.startswith("lo"))
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)


def data(ranks, kind):
    """The whole batch: features, target, and what every row adds to the denominator of the mean."""
    generator = torch.Generator().manual_seed(ranks)
    rows = sum(PARTS[:ranks])
    x = torch.randn(rows, 6, generator=generator, dtype=torch.float64) * 3
    y = torch.randint(CLASSES, (rows,), generator=generator)
    if kind == "soft":
        q = torch.rand(rows, CLASSES, generator=generator, dtype=torch.float64) ** 3
        q[::5] = 0
        return x, q / q.sum(1, keepdim=True).clamp(min=1e-9), (q.sum(1) > 0).double()
    y[::5] = IGNORED
    if kind == "one rank ignored":
        y.split(PARTS[:ranks])[HOPELESS].fill_(IGNORED)
    mass = (y != IGNORED).double()
    return x, y, mass * WEIGHT[y.clamp(max=CLASSES - 1)] if kind == "class weights" else mass


def model():
    """The same in every process."""
    torch.manual_seed(0)
    return nn.Linear(6, CLASSES, dtype=torch.float64)


def gradients(net):
    return [parameter.grad.clone() for parameter in net.parameters()]


def expect_same(found, wanted, what):
    for one, other in zip(found, wanted, strict=True):
        error = float((one - other).abs().max())
        assert error < 1e-13, f"{what}: differs by {error:.3g}"


def whole_batch(make, ranks, kind, options):
    """Value and gradients of one process."""
    x, y, _ = data(ranks, kind)
    net = model()
    value = make(**options)(net(x), y)
    value.backward()
    return value.detach(), gradients(net)


def together(make, rank, ranks, kind, group, options):
    """Value, averaged over the ranks, and the gradients that DDP averages."""
    x, y, mass = data(ranks, kind)
    part = slice(sum(PARTS[:rank]), sum(PARTS[: rank + 1]))
    net = DistributedDataParallel(model(), process_group=group)
    value = make(**options)(net(x[part]), y[part], normalizer=mass.sum() / ranks)
    value.backward()
    total = value.detach().clone()
    distributed.all_reduce(total, group=group)
    return total / ranks, gradients(net)


def compare(rank, ranks, group):
    """DDP on parts of a batch against the whole of it."""
    for kind in TARGETS:
        for fused in ("auto", False):
            options = {"ignore_index": IGNORED, "fused": fused}
            options |= {"weight": WEIGHT} if kind == "class weights" else {}
            for name, make in (COUPLED | ROWS).items():
                told = {"group": True if ranks == RANKS else group} if name in COUPLED else {}
                value, slopes = together(make, rank, ranks, kind, group, options | told)
                wanted = whole_batch(make, ranks, kind, options)
                what = f"{name}, {kind}, {fused=}, {ranks} ranks"
                expect_same([value], wanted[:1], f"value of {what}")
                expect_same(slopes, wanted[1], f"gradient of {what}")


def unshared_statistics_differ(rank, ranks, group):
    """What the comparison above would miss if it could: without a group the gap is that of the rank."""
    options = {"ignore_index": IGNORED}
    _, slopes = together(COUPLED["MDCA"], rank, ranks, "labels", group, options)
    _, wanted = whole_batch(COUPLED["MDCA"], ranks, "labels", options)
    assert max(float((a - b).abs().max()) for a, b in zip(slopes, wanted, strict=True)) > 1e-3


def histories(rank, ranks, group):
    """What each rank saw is known to all at the end of the epoch, and to one process that saw it all."""
    for make in (confide.CRL, lambda **more: confide.ACLS(condition="ranking", **more)):
        mine, alone = (make(size=40, ignore_index=IGNORED) for _ in range(2))
        generator = torch.Generator().manual_seed(5)
        for _ in range(3):
            order = torch.randperm(40, generator=generator)[: sum(PARTS[:ranks])].split(PARTS[:ranks])
            x, y, _ = data(ranks, "one rank ignored")
            z = torch.randn(len(x), CLASSES, generator=generator, dtype=torch.float64)
            for other, (index, some, labels) in enumerate(
                zip(order, z.split(PARTS[:ranks]), y.split(PARTS[:ranks]), strict=True)
            ):
                alone(some, labels, index=index)
                if other == rank:
                    mine(some, labels, index=index)
            mine.epoch_end(True if ranks == RANKS else group)
            alone.epoch_end()
            for name, buffer in mine.state_dict().items():
                assert torch.equal(buffer, alone.state_dict()[name]), f"{name} of {make} on {ranks} ranks"
        assert int(mine.history.right.max()) > 0


def main(rank, store):
    """All comparisons, with two, three and four of the processes."""
    start(rank, store)
    groups = {ranks: distributed.new_group(range(ranks)) for ranks in (2, 3, 4)}
    for ranks, group in groups.items():
        if rank < ranks:
            compare(rank, ranks, group)
            unshared_statistics_differ(rank, ranks, group)
            histories(rank, ranks, group)
    distributed.barrier()
    distributed.destroy_process_group()
