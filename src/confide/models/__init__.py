"""Small models for the demo and the tests."""
