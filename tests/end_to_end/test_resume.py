"""Training that is interrupted, saved and resumed gives the same bits as training that is not."""

import io

import pytest
import torch
from torch import nn

from confide import ACLS, CRL, MbLS

SAMPLES, CLASSES, EPOCHS, BATCH = 24, 4, 4, 6
MAKERS = {
    "CRL": lambda: CRL(SAMPLES),
    "CRL by entropy": lambda: CRL(SAMPLES, confidence="entropy", strength=2.0),
    "CRL by margin": lambda: CRL(SAMPLES, confidence="margin"),
    "ACLS": lambda: ACLS(size=SAMPLES, condition="ranking", margin=0.1, top=0.5, rest=0.5),
    "a sum": lambda: MbLS(margin=0.5) + 0.5 * CRL(SAMPLES).penalty_only(),
}


class Run:
    """A model in training, and where it is."""

    def __init__(self, make):
        torch.manual_seed(0)
        self.model = nn.Linear(5, CLASSES)
        self.criterion = make()
        self.optimizer = torch.optim.SGD([*self.model.parameters()], lr=0.5, momentum=0.9)
        self.parts = {"model": self.model, "criterion": self.criterion, "optimizer": self.optimizer}

    def step(self, number):
        """One batch; behind the last one of an epoch the epoch ends."""
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(SAMPLES, 5, generator=generator)
        y = torch.randint(CLASSES, (SAMPLES,), generator=generator)
        epoch, batch = divmod(number, SAMPLES // BATCH)
        order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(epoch))
        index = order.split(BATCH)[batch]
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x[index]), y[index], index=index)
        loss.backward()
        self.optimizer.step()
        if batch == SAMPLES // BATCH - 1:
            for part in self.criterion.modules():
                if getattr(part, "history", None) is not None:
                    part.epoch_end()
        return loss.detach()

    def saved(self):
        """A checkpoint, as a file would hold it."""
        file = io.BytesIO()
        torch.save({name: part.state_dict() for name, part in self.parts.items()}, file)
        file.seek(0)
        return file

    def load(self, file):
        for name, state in torch.load(file, weights_only=True).items():
            self.parts[name].load_state_dict(state)


STEPS = EPOCHS * SAMPLES // BATCH


@pytest.mark.parametrize("stop", [6, 8, 13], ids=["within an epoch", "between epochs", "later"])
@pytest.mark.parametrize("name", MAKERS)
def test_same_bits(name, stop):
    whole = Run(MAKERS[name])
    wanted = [whole.step(number) for number in range(STEPS)]
    first = Run(MAKERS[name])
    for number in range(stop):
        first.step(number)
    second = Run(MAKERS[name])
    second.load(first.saved())
    assert [second.step(number) for number in range(stop, STEPS)] == wanted[stop:]
    for part in ("model", "criterion"):
        found, sought = second.parts[part].state_dict(), whole.parts[part].state_dict()
        assert found.keys() == sought.keys()
        assert all(torch.equal(found[key], sought[key]) for key in sought)


@pytest.mark.parametrize("name", MAKERS)
def test_a_forgotten_history_shows(name):
    """What the test above would miss if the history did not matter."""
    first = Run(MAKERS[name])
    for number in range(8):
        first.step(number)
    second = Run(MAKERS[name])
    file = first.saved()
    second.parts.pop("criterion")
    state = torch.load(file, weights_only=True)
    state.pop("criterion")
    for part, kept in state.items():
        second.parts[part].load_state_dict(kept)
    assert [first.step(number) for number in range(8, 12)] != [second.step(number) for number in range(8, 12)]


def test_a_history_of_another_size_is_refused():
    with pytest.raises(RuntimeError, match="size mismatch"):
        CRL(5).load_state_dict(CRL(6).state_dict())
