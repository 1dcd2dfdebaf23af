"""The command `lagwise`: one module per subcommand, loaded when it is called.

Imports what a subcommand needs, so that the help starts in a fraction of a second. Start with `app`; `place` says
where the tables are, `tables` has the subcommands that read them.
"""
