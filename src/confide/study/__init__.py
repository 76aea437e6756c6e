"""Controlled comparisons of training losses."""
