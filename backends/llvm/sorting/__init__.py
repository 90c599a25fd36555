"""Sorting: keys, networks across rows, radix sorts along them."""
