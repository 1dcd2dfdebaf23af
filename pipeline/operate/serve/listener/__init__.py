"""The process that listens: the server, the limits of its connections, and of its warnings."""
