"""What people use: the command `lagwise`, the demo, fetching jars.

Imports everything; nothing imports it. Start with `cli.app`; `output` prints rows for people and for programs.
"""
