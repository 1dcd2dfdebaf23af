"""Kafka's binary formats: the consumer protocol, sticky user data, records of the offsets topic.

Imports `model` and `errors`. Start with `consumer`; `reader` and `writer` are the primitive types.
"""
