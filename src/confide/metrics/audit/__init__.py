"""Everything that one pass over the data can give, as sums that merge, save and become plain data."""

from confide.metrics.audit.audit import Audit as Audit
