"""A driver as an operator submits it, by deploy/submit.sh, in a process group and a working folder of its own."""

import os
from collections.abc import Mapping
from pathlib import Path

from pipeline.config.load import load
from tests.support.job.driver_process import DriverProcess
from tests.support.spark.executor_python import linked_python

_SUBMIT = Path(__file__).parents[3] / "deploy" / "submit.sh"


class SubmittedDriver(DriverProcess):
    """From its start to `end`, `kill` or its own end.

    Attributes:
        folder: Where it runs.
    """

    def __init__(
        self, folder: Path, config: Path, *options: str, master: str, variables: Mapping[str, str]
    ) -> None:
        """Start it.

        Args:
            folder: To run in, made here.
            config: File of the configuration.
            options: Of the job.
            master: URL of the cluster.
            variables: Of its environment.
        """
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SUBMIT_ARGS": f"--master {master} --driver-memory 1g --executor-memory 512m",
            **variables,
        }
        environment.pop("PYTHONPATH", None)
        command = [str(_SUBMIT), "--config", str(config), *options]
        super().__init__(command, folder / "log", cwd=folder, env=environment)

    def wait_for_batches(self, count: int = 1) -> None:
        """Return when so many more have ended."""
        wanted = self.batches + count
        self.wait(lambda: self.batches >= wanted, what=f"{count} batches of the driver in {self.folder}")

    def end(self) -> int:
        """Ask it to end, as a supervisor does that knows the one process it has started; its exit status."""
        self.terminate()
        return self.ended()


class Drivers:
    """Drivers of one configuration, on tables that all hosts share.

    The address of the brokers stands in a file that the configuration refers to: the one of drivers in their working
    folders, the one of executors in theirs, where it is shipped.

    Attributes:
        config: Of all of them.
    """

    def __init__(
        self, folder: Path, settings: str, master: str, *, of_drivers: str, of_executors: str
    ) -> None:
        """Start none.

        Args:
            folder: Everything that they write is below.
            settings: More of the configuration, as TOML.
            master: URL of the cluster.
            of_drivers: Address of the brokers for drivers.
            of_executors: And for executors.
        """
        self._folder, self._master, self._of_drivers = folder, master, of_drivers
        self._started: list[SubmittedDriver] = []
        self._file = folder / "lagwise.toml"
        places = f'[tables]\nroot = "{folder}/tables"\nshared = true\n'
        brokers = '[kafka.properties]\n"bootstrap.servers" = "file:servers"\n'
        self._file.write_text(brokers + places + settings, encoding="utf-8")
        self.config = load(self._file)
        shipped = folder / "shipped" / "servers"
        shipped.parent.mkdir()
        shipped.write_text(of_executors, encoding="utf-8")
        python = linked_python(folder / "python")
        self.variables = {"PYSPARK_PYTHON": str(python), "LAGWISE_FILES": str(shipped)}

    def submit(self, name: str, *options: str) -> SubmittedDriver:
        """One more, in a folder of this name."""
        folder = self._folder / name
        folder.mkdir()
        (folder / "servers").write_text(self._of_drivers, encoding="utf-8")
        driver = SubmittedDriver(folder, self._file, *options, master=self._master, variables=self.variables)
        self._started.append(driver)
        return driver

    def kill(self) -> None:
        """SIGKILL to all that are left."""
        for driver in self._started:
            driver.kill()
