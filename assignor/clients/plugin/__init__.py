"""The assignor that runs inside a client: what a member says, what the leader decides, what is acknowledged.

Imports `protocol`, `strategies` and `clients.control`; no client. Start with `membership`, then `leading`, where a
member begins to compute, and `leader`; `attached` joins a membership to a consumer.
"""
