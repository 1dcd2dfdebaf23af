"""What consumers import to follow the control topic; each client library stands behind an extra of its own."""
