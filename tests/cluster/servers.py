"""Servers of the suite: Flink, Beam's job servers, worker pools, and stores.

All of them listen on the loopback interface in the network namespace of the suite, at fixed ports.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.pipelines import hub

from . import stores
from .fetch import LIBRARIES, azurite, classpath, go_program

HERE = Path(__file__).parent
PATIENCE = 120.0  # timeout of the start of a server in seconds

LOCAL_BEAM, PRISM = "local Beam", "Prism"
EMBEDDED_FLINK, FLINK, SPARK = "embedded Flink", "Flink", "Spark"
FLINK_JOB_SERVER = "org.apache.beam.runners.flink.FlinkJobServerDriver"
JOB_SERVER = 8099
REST = 8081  # port of the JobManager
POOL = 50000
SPARK_MASTER = 7077
KAFKA = 9092  # its controller has the next port
EXPANSION = 8097

OPENED = (
    *("java.io", "java.lang", "java.lang.invoke", "java.net", "java.nio", "java.time"),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch"),
)
"""The packages of Java 17 that Flink and Spark reach into."""
QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Programs that run for minutes spend most of the time on compiling themselves otherwise."""
TASK_MANAGERS = EXECUTORS = 2
NETWORK = "512mb"
TASK_MANAGER_MEMORY = {
    "cpu.cores": "1.0",
    "memory.framework.heap.size": "128mb",
    "memory.framework.off-heap.size": "128mb",
    "memory.task.heap.size": "512mb",
    "memory.task.off-heap.size": "0b",
    "memory.managed.size": "128mb",
    "memory.jvm-metaspace.size": "256mb",
    "memory.jvm-overhead.min": "192mb",
    "memory.jvm-overhead.max": "192mb",
}
"""Settings that Flink's scripts compute from the size of the process."""


class ServerError(Exception):
    """A server did not start."""


@dataclass
class Server:
    """A process of the suite, in its own session, with a log."""

    name: str
    command: Sequence[str]
    log: Path
    directory: Path
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd=self.directory,  # not the directory of a driver
                start_new_session=True,
            )

    def wait_for(self, is_up: Callable[[], bool]) -> None:
        """Wait until the server is up. Raises ServerError if it ends before, or takes too long."""
        end = time.monotonic() + PATIENCE
        while not is_up():
            if self.process.poll() is not None or time.monotonic() > end:
                last = self.log.read_text(errors="replace")[-2000:]
                raise ServerError(f"{self.name} did not come up; {self.log} ends with:\n{last}")
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill the process like a failing machine, but not its children."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Kill the process and its children. (Flink takes seconds to end.)"""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def is_open(port: int) -> bool:
    """Return True if a process listens at a port of this machine."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def java(name: str, main: str, *args: object, heap: str = "800m") -> list[str]:
    """Return the command of a Java program with its libraries."""
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    logging = [
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    ]
    # With Beam in its libraries, Flink does not load it again for each job.
    path = ":".join(map(classpath, ("flink", "beam-flink") if name == "flink" else (name,)))
    options = [*QUICK, f"-Xmx{heap}", *opened, *logging]
    return ["java", *options, "-cp", path, main, *map(str, args)]


class Servers:
    """All started servers, which are stopped together."""

    def __init__(self, directory: Path, network: str = NETWORK) -> None:
        """Create no servers yet. `network`: memory of a TaskManager for buffers between tasks."""
        self.directory, self.network = directory, network
        self.running: dict[str, Server] = {}
        self.cluster = ""

    def start(self, name: str, command: Sequence[str], **more: str) -> Server:
        """Start a server under a name. `more`: variables of its environment."""
        log, scratch = self.directory / f"{name}.log", self.directory / "scratch"
        scratch.mkdir(exist_ok=True)
        options = {"JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={scratch}"}
        server = Server(name, command, log, scratch, worker_environment() | options | more)
        self.running[name] = server
        return server

    def properties(self, name: str, settings: Mapping[str, object]) -> Path:
        """Write a file of settings for Java programs."""
        path = self.directory / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def stop(self, *, but: Collection[str] = ()) -> None:
        """Stop all servers, the last one first. `but`: names of servers to keep."""
        for name in reversed([name for name in self.running if name not in but]):
            self.running.pop(name).stop()

    def have_up(self, cluster: str, *, pool: bool) -> None:
        """Start a cluster and a pool of workers, unless they are up. The cluster before is stopped,
        because small machines lack the memory for both."""
        if cluster != self.cluster:
            self.stop(but=stores.STORES)
            self.cluster = cluster
            start = {
                EMBEDDED_FLINK: self.start_embedded,
                FLINK: self.start_flink,
                SPARK: self.start_spark,
            }.get(cluster)
            if start is not None:  # the others start with each job
                start()
        if pool and "worker-pool" not in self.running:
            self.start_pool()

    # --- Beam and Flink --------------------------------------------------------------------------

    def start_job_server(self, library: str, *program: str, **more: str) -> None:
        """Start a job server of Beam. `program`: its class and its options."""
        ports = [f"--job-port={JOB_SERVER}", f"--artifact-port={JOB_SERVER - 1}"]
        where = ["--job-host=127.0.0.1", *ports, "--expansion-port=-1"]
        staged = f"--artifacts-dir={self.directory / 'staged'}"
        command = java(library, *program, *where, staged, heap="1500m")
        self.start("job-server", command, **more).wait_for(lambda: is_open(JOB_SERVER))

    def start_embedded(self) -> None:
        """Start a job server that runs Flink in its own process."""
        flink = ["--flink-master=[local]", f"--flink-conf-dir={HERE / 'embedded'}"]
        self.start_job_server("beam-flink", FLINK_JOB_SERVER, *flink)

    def start_spark(self) -> None:
        """Start a master of Spark, workers with one executor each, and a job server."""
        home = self.directory / "spark"
        home.mkdir(exist_ok=True)
        with suppress(FileExistsError):
            (home / "jars").symlink_to(classpath("beam-spark").removesuffix("/*"))
        settings = {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.12"}
        here, url = ["--host", "127.0.0.1"], f"127.0.0.1:{SPARK_MASTER}"
        command = java("beam-spark", "org.apache.spark.deploy.master.Master", *here)
        master = self.start("spark-master", command, **settings)
        master.wait_for(lambda: is_open(SPARK_MASTER))
        own = ["--cores", "1", "--memory", "1g", "--work-dir", home / "work", f"spark://{url}"]
        for number in range(1, EXECUTORS + 1):
            command = java("beam-spark", "org.apache.spark.deploy.worker.Worker", *here, *own)
            self.start(f"spark-worker-{number}", command, **settings)
        driver = "org.apache.beam.runners.spark.SparkJobServerDriver"
        self.start_job_server("beam-spark", driver, f"--spark-master-url=spark://{url}")

    def start_flink(self) -> None:
        """Start a JobManager, its TaskManagers, and a job server for them."""
        manager = self.start_job_manager()
        for number in range(1, TASK_MANAGERS + 1):
            self.start_task_manager(number)
        manager.wait_for(lambda: task_managers() == TASK_MANAGERS)
        self.start_in_flink_client()

    def start_job_manager(self) -> Server:
        """Start a JobManager."""
        main = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
        return self.start("jobmanager", java("flink", main, "--configDir", HERE))

    def replace_job_server(self) -> None:
        """Kill the job server, and start another one."""
        self.running["job-server"].stop()
        self.start_in_flink_client()

    def replace_job_manager(self) -> None:
        """Kill the JobManager, and start another one, which the TaskManagers find."""
        self.running["jobmanager"].kill()
        manager = self.start_job_manager()
        manager.wait_for(lambda: task_managers() == TASK_MANAGERS)

    def start_in_flink_client(self) -> None:
        """Start a job server as `flink run` does with a program. So each job sends only the jar of
        the program, which is empty, and not all libraries of Beam, which the cluster has
        already."""
        jar = self.directory / "nothing.jar"
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n\n")
        run = ["org.apache.flink.client.cli.CliFrontend", "run", "-c", FLINK_JOB_SERVER, str(jar)]
        self.start_job_server("flink", *run, "--flink-master=[auto]", FLINK_CONF_DIR=str(HERE))

    def start_task_manager(self, number: int) -> None:
        """Start a TaskManager."""
        main = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
        network = {f"memory.network.{end}": self.network for end in ("min", "max")}
        memory = [
            part
            for name, value in (TASK_MANAGER_MEMORY | network).items()
            for part in ("-D", f"taskmanager.{name}={value}")
        ]
        command = java("flink", main, "--configDir", HERE, *memory, heap="640m")
        self.start(f"taskmanager-{number}", command)

    def replace_task_managers(self, process: int | None = None) -> None:
        """Kill the TaskManager with this process id, or all of them, and start others."""
        names = [f"taskmanager-{number}" for number in range(1, TASK_MANAGERS + 1)]
        killed = [name for name in names if process in (None, self.running[name].process.pid)]
        for name in killed:
            self.running[name].kill()
        for name in killed:
            self.start_task_manager(int(name.rpartition("-")[2]))

    def start_pool(self) -> None:
        """Start a pool of EXTERNAL workers, whose environment names the S3 server."""
        main = "apache_beam.runners.worker.worker_pool_main"
        command = [sys.executable, "-m", main, f"--service_port={POOL}"]
        pool = self.start("worker-pool", command, **stores.S3_ENDPOINT)
        pool.wait_for(lambda: is_open(POOL))

    # --- Kafka -----------------------------------------------------------------------------------

    def start_kafka(self) -> None:
        """Start a broker of Kafka, and the expansion service of Beam's transforms for it."""
        at = f"127.0.0.1:{KAFKA}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{KAFKA + 1}",
            "listeners": f"PLAINTEXT://{at},CONTROLLER://127.0.0.1:{KAFKA + 1}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.directory / "data-kafka",
            "offsets.topic.replication.factor": "1",
            "num.partitions": "2",
        }
        properties = self.properties("kafka", settings)
        id_of_cluster = "MkU3OEVBNTcwNTJENDM2Qg"  # any 16 bytes in base 64
        format_ = ["format", "-t", id_of_cluster, "-c", properties]
        command = java("kafka", "kafka.tools.StorageTool", *format_)
        subprocess.run(command, check=True, capture_output=True)
        broker = self.start("kafka", java("kafka", "kafka.Kafka", properties, heap="400m"))
        broker.wait_for(lambda: is_open(KAFKA))
        main = "org.apache.beam.sdk.expansion.service.ExpansionService"
        config = json.dumps({"command": boot_command(self.directory, "java")})
        workers = ["--defaultEnvironmentType=PROCESS", f"--defaultEnvironmentConfig={config}"]
        command = java("kafka-io", main, EXPANSION, *workers, heap="400m")
        self.start("expansion-service", command).wait_for(lambda: is_open(EXPANSION))

    # --- Stores ----------------------------------------------------------------------------------

    def start_store(self, files: str) -> None:
        """Start the server of a store, and create its bucket."""
        data, port = self.directory / f"data-{files}", stores.STORES[files].port
        data.mkdir()
        command = {
            stores.S3: self._s3,
            stores.GOOGLE: self._google,
            stores.AZURE: self._azure,
            stores.HUB: self._hub,
        }[files](data, port)
        self.start(files, command).wait_for(lambda: is_open(port))
        stores.STORES[files].make_bucket()

    def _s3(self, data: Path, port: int) -> list[str]:
        (data / stores.BUCKET).mkdir()
        settings = {
            "s3proxy.endpoint": f"http://127.0.0.1:{port}",
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": stores.KEY_ID,
            "s3proxy.credential": stores.SECRET,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": data,
            "jclouds.identity": stores.KEY_ID,
            "jclouds.credential": stores.SECRET,
        }
        properties = self.properties("s3proxy", settings)
        logging = f"-Dlogback.configurationFile={LIBRARIES / 's3proxy' / 'logback.xml'}"
        command = java("s3proxy", "org.gaul.s3proxy.Main", "--properties", properties, heap="400m")
        return [*command[:1], logging, *command[1:]]

    def _google(self, data: Path, port: int) -> list[str]:
        where = ["-scheme=http", "-host=127.0.0.1", f"-port={port}"]
        public = f"-public-host=127.0.0.1:{port}"
        return [str(go_program("fake-gcs-server")), *where, public, "-backend=memory"]

    def _azure(self, data: Path, port: int) -> list[str]:
        where = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
        how = ["--location", str(data), "--silent", "--skipApiVersionCheck"]
        return [str(azurite()), *where, *how]

    def _hub(self, data: Path, port: int) -> list[str]:
        return [sys.executable, hub.__file__, str(data), str(port)]


def worker_environment() -> dict[str, str]:
    """Return the environment of workers, and of the servers that start them. A pool runs the
    `python` in its path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, **stores.S3_KEYS, "PATH": path, "PYTHONPATH": str(HERE.parent.parent)}


def boot_command(directory: Path, language: str = "python") -> str:
    """Write the script of PROCESS workers, and return its path."""
    script = directory / f"boot-{language}"
    if not script.exists():
        boot = f'"{sys.executable}" -m tests.cluster.boot {language}'
        script.write_text(f'#!/bin/sh\nexec {boot} "$@"\n')
        script.chmod(0o755)
    return str(script)


def rest(path: str) -> Any:
    """Return the answer of the JobManager."""
    with urllib.request.urlopen(f"http://127.0.0.1:{REST}/{path}", timeout=5) as answer:
        return json.load(answer)


def task_managers() -> int:
    """Return the number of registered TaskManagers, with their slots."""
    with suppress(OSError, ValueError):
        found = rest("taskmanagers")["taskmanagers"]
        return sum(manager["slotsNumber"] > 0 for manager in found)
    return 0
