"""Wire formats of lagwise: the control record, acknowledgements, orders; Kafka's own are in `kafka`.

Imports `model` and `errors`. Start with `control`, which consumers read; `json_fields` reads what others wrote.
"""
