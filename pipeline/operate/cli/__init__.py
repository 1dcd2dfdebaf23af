"""The command `lagwise`: one module per subcommand, loaded when it is called.

Imports what a subcommand needs, so that the help starts in a fraction of a second. Start with `app`; `locations` finds
the tables, `tables` has the subcommands that read them.
"""
