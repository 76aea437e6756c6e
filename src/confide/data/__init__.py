"""The small data set that ships with confide."""
