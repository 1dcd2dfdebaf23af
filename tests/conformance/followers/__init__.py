"""Our followers as processes that the kit can judge, and some that do wrong."""
