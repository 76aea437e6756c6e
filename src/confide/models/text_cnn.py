"""The convolutional network for texts with a global maximum over words, of MMCE and MbLS."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH, SIZE = 128, 5


class TextCNN(nn.Module):
    """Frozen word vectors, three convolutions over five words, the maximum over all places, a hidden layer.

    Between convolutions is a maximum over five places that steps by one. `vectors` has a row a word, or is a shape.
    """

    def __init__(
        self, vectors: Tensor | tuple[int, int] = (2000, 100), classes: int = 20, dropout: float = 0.0
    ) -> None:
        super().__init__()
        table = vectors if isinstance(vectors, Tensor) else torch.randn(*vectors)
        self.embedding = nn.Embedding.from_pretrained(table, freeze=True)
        widths = (table.shape[1], WIDTH, WIDTH, WIDTH)
        self.convs = nn.ModuleList(nn.Conv1d(a, b, SIZE) for a, b in pairwise(widths))
        self.hidden = nn.Linear(WIDTH, WIDTH)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(WIDTH, classes)

    def forward(self, words: Tensor) -> Tensor:
        """Word numbers of shape (N, L) in, logits of shape (N, classes) out; L is at least 21."""
        x = self.embedding(words).transpose(1, 2)
        first, second, third = self.convs
        for conv in (first, second):
            x = F.max_pool1d(F.relu(conv(x)), SIZE, stride=1)
        x = F.relu(third(x)).amax(2)
        logits: Tensor = self.head(self.dropout(F.relu(self.hidden(x))))
        return logits
