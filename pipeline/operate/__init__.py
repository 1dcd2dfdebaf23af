"""What people use: the command `lagwise`, the demo, fetching jars, the command of `deploy/submit.sh`.

Imports everything; nothing imports it. Start with `cli.app`; `output` prints rows for people and for programs.
"""
