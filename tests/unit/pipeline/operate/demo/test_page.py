import socket
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.errors import MissingDependencyError
from pipeline.operate.demo.page import Page
from tests.support.operate.serving import get
from tests.support.waiting import wait_until


def test_page_answers_at_the_address_it_tells_also_if_its_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        file = tmp_path / "lagwise.toml"
        file.write_text(f'[tables]\nroot = "{tmp_path}"\n[serve]\nport = {taken.getsockname()[1]}\n')
        with closing(Page(file)) as page:
            told: list[str] = []

            def has_told() -> bool:
                told.extend(news for news in [page.news()] if news)
                return bool(told)

            wait_until(has_told, what="the address of the page")
            url = told[0]
            answer = get(f"{url}/healthz")

            assert (answer.status, page.news()) == (200, None)
            assert url != f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(ConnectionRefusedError):
        get(f"{url}/healthz")


def test_page_without_its_packages_says_which_command_installs_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pipeline.operate.extras.find_spec", lambda name: None if name == "uvicorn" else name)

    with pytest.raises(
        MissingDependencyError, match=r"needs the package uvicorn: pip install 'lagwise\[serve\]'"
    ):
        Page(tmp_path / "lagwise.toml")
