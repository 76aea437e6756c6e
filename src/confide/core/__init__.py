"""Pure functions on tensors: no modules, no files, no settings."""
