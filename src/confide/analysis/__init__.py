"""What a loss does to a batch, and what saved logits suggest: pure functions on tensors, nothing is drawn here."""

from confide.analysis.margins import suggest as suggest
from confide.analysis.penalties import Activity as Activity
from confide.analysis.penalties import activity as activity
from confide.analysis.suggestion import Suggestion as Suggestion
