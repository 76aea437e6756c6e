"""From results to numbers that are ready to be shown (table.py), and from numbers to ink (figures.py)."""
