"""Care of the tables: creation, expiry, compaction and vacuum, copies, and upgrades of those of earlier versions."""
