"""Settings of the property tests."""

from hypothesis import settings

# A deadline per example measures the other load of the machine, not the code.
settings.register_profile("lagwise", deadline=None)
settings.load_profile("lagwise")
