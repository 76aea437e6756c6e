"""confide: make a network's confidence trustworthy."""
