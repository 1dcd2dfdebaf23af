"""Groups as their coordinators describe them, asked in each batch where no offsets topic can be read.

Imports the Kafka client of its process. Start with `ask` (what one task asks); `listing` says which groups there are,
and what is asked for together is in `settings`.
"""
