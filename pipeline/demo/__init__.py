"""The demo: the real stream on an embedded broker, with consumers that fall behind unevenly.

scene      which topics and groups there are, and how fast everything is
traffic    the producer process; `members` the consumer processes; `crew` starts and ends them
folder     where everything is written; `terminal` keeps foreign output away from the view
snapshot   what the tables say; `moves` what the members that follow say; `live` and `lines` show both
course     how the lag of each group went; `results` and `plot` say it at the end, `summary` sums up
show       joins them
"""
