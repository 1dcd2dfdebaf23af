"""The configuration: a TOML file, read and checked as a whole.

Imports `assignor` and `errors`. Start with `model`, whose classes are the tables of the file; `load` reads one.
"""
