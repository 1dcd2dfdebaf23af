"""The assignor inside a client: a member's data, the leader's decision, and the acknowledgements.

Imports `protocol`, `strategies` and `clients.control`; no client. Start with `membership`, then `leading`, where a
member begins to compute, and `leader`; `attached` joins a membership to a consumer.
"""
