"""The reference networks of the papers, and those of other libraries by name (`named.build`)."""
