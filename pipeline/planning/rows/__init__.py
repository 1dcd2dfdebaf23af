"""The border of decisions: rows of tables to facts, and a decision to a row. Imports `planning`, Arrow, no Spark."""
