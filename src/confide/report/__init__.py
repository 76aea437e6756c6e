"""From results to numbers that are ready to be shown (table.py), to ink (figures.py), and from methods to pages."""
