"""Measures of commits: lag at each commit, the window of recent ones, and their pace."""
