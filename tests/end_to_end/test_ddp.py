"""Parts of a batch on several processes, uneven and one of them without a label, against the whole on one."""

import ranks
import torch


def test_gradients_values_and_histories(tmp_path):
    """An error in a process is raised here."""
    torch.multiprocessing.spawn(ranks.main, args=(str(tmp_path / "store"),), nprocs=ranks.RANKS)
