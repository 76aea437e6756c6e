"""File formats: a path in, named arrays out, each read a slab at a time. What they mean is not known here."""
