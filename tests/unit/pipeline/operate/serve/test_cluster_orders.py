"""Several clusters in one process: an order reaches the one of its page, says so, and waits for no other."""

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from pipeline.config.model import Config, ServeConfig
from pipeline.operate.cli.locations import find_several
from pipeline.operate.cli.serve import deployment
from pipeline.operate.serve.app import build_app
from pipeline.operate.serve.clusters import Deployment
from pipeline.operate.serve.orders import Desk
from pipeline.tables.reading import Tables
from tests.support.operate.asgi import ask
from tests.support.operate.cluster_world import cluster_world
from tests.support.operate.page_orders import BY_ANN, TOKEN, sent
from tests.support.operate.table_world import World

_TAKES_ORDERS = Config(serve=ServeConfig(token="env:LAGWISE_PAGE_TOKEN"))  # noqa: S106 - a reference


class Clerk:
    """Takes orders for one cluster."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def approve(self, group: str, **_: str) -> None:
        self.written.append(f"approve {group}")

    def stand(self, group: str, *, order: str, **_: str) -> str:
        self.written.append(f"{order} {group}")
        return "holds now"


def desk(clerk: Clerk) -> Desk:
    return Desk(token=TOKEN, approve=clerk.approve, stand=clerk.stand)


def test_order_goes_to_the_cluster_of_its_page_and_is_refused_in_words_elsewhere(
    eu: World, us: World, tmp_path: Path
) -> None:
    asia = cluster_world(tmp_path / "asia", "asia", lag=3)
    of_eu, of_us = Clerk(), Clerk()
    app = build_app(
        Tables(str(eu.root)),
        _TAKES_ORDERS,
        desk(of_eu),
        others=[
            Deployment(tables=Tables(str(us.root)), config=_TAKES_ORDERS, desk=desk(of_us)),
            Deployment(tables=Tables(str(asia.root)), config=_TAKES_ORDERS),
        ],
    )
    pause = {"order": "pause", **BY_ANN}

    assert 'action="/order?id=billing&amp;cluster=us"' in ask(app, "/group?id=billing&cluster=us").text
    written = sent(app, "/order?id=billing&cluster=us", pause)
    approved = sent(app, "/approve?id=billing&cluster=eu", {"plan": "3f2a-91bc", **BY_ANN})
    refused = [
        sent(app, f"/order?id=billing{query}", pause) for query in ("", "&cluster=asia", "&cluster=nowhere")
    ]

    assert (written.status, approved.status) == (200, 200)
    assert 'href="/group?id=billing&amp;cluster=us"' in written.text
    assert (of_eu.written, of_us.written) == (["approve billing"], ["pause billing"])
    assert [one.status for one in refused] == [400, 400, 400]
    assert "there are several clusters" in refused[0].text
    assert "repeat --config, one for each cluster" in refused[1].text
    html = ask(app, "/group?id=billing&cluster=asia").text
    assert "<form" not in html
    assert "Orders for this cluster are not accepted here" in html


def test_order_says_of_which_cluster_it_is(eu: World, us: World, caplog: pytest.LogCaptureFixture) -> None:
    of_eu, of_us = Clerk(), Clerk()
    app = build_app(
        Tables(str(eu.root)),
        _TAKES_ORDERS,
        desk(of_eu),
        others=[Deployment(tables=Tables(str(us.root)), config=_TAKES_ORDERS, desk=desk(of_us))],
    )

    with caplog.at_level(logging.INFO):
        written = sent(app, "/order?id=billing&cluster=us", {"order": "pause", **BY_ANN})
        approved = sent(app, "/approve?id=billing&cluster=eu", {"plan": "3f2a-91bc", **BY_ANN})
        refused = sent(app, "/order?id=billing&cluster=us", {"order": "dance", **BY_ANN})

    assert "Cluster us: holds now" in written.text
    assert "Cluster eu: ann@page has approved plan 3f2a-91bc" in approved.text
    assert "Cluster us: there is no such order" in refused.text
    told = [one for one in caplog.records if one.message.startswith("an order was")]
    assert [one.__dict__["cluster"] for one in told] == ["us", "eu", "us"]


def test_order_for_one_cluster_does_not_wait_for_that_of_another(eu: World, us: World) -> None:
    class Late(Clerk):
        """Waits for its brokers."""

        def stand(self, group: str, *, order: str, **more: str) -> str:
            began.set()
            assert brokers_answer.wait(60)
            return super().stand(group, order=order, **more)

    began, brokers_answer = Event(), Event()
    app = build_app(
        Tables(str(eu.root)),
        _TAKES_ORDERS,
        desk(Late()),
        others=[Deployment(tables=Tables(str(us.root)), config=_TAKES_ORDERS, desk=desk(Clerk()))],
    )
    pause = {"order": "pause", **BY_ANN}

    with ThreadPoolExecutor(2) as pool:
        late = pool.submit(sent, app, "/order?id=billing&cluster=eu", pause)
        assert began.wait(60)
        try:
            assert pool.submit(sent, app, "/order?id=billing&cluster=us", pause).result(30).status == 200
            assert not late.done()
        finally:
            brokers_answer.set()
        assert late.result(60).status == 200


@pytest.mark.parametrize(("tables", "takes_orders"), [("us", False), ("eu", True), ("eu/../eu/", True)])
def test_orders_are_taken_only_on_pages_of_the_tables_that_the_configuration_names(
    eu: World,
    us: World,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    tables: str,
    takes_orders: bool,
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    file = tmp_path / "eu.toml"
    file.write_text(
        f'[kafka.properties]\n"bootstrap.servers" = "eu:9092"\n[tables]\nroot = "{eu.root}"\n'
        f'[serve]\ntoken = "file:{tmp_path}/token"\n'
    )

    (found,) = find_several([f"{us.root.parent}/{tables}"], [file])
    shown = deployment(found, found.config.serve)

    assert (shown.desk is not None) == takes_orders
    assert ("orders are off on the pages of" in capsys.readouterr().err) != takes_orders
