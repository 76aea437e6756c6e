"""Readers of the data sets of the papers, and of your own in the same layouts."""
