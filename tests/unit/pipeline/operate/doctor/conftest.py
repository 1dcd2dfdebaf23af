from pathlib import Path

import pytest

from tests.support.operate.patient import Patient


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    """A group that is well."""
    made = Patient(tmp_path)
    made.is_well()
    return made
