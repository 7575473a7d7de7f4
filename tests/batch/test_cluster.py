"""Scoring on a real Ray cluster: a head and a worker on loopback, and the death of the worker in the middle."""

from __future__ import annotations

import csv
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import emoglot
from emoglot.batch.scoring import ModelSource
from emoglot.errors import DataError, UsageError

pytest.importorskip("pyarrow")
pytest.importorskip("ray", reason="the cluster is not tested: pip install 'emoglot[ray]'")

import pyarrow as pa
import ray
from pyarrow import parquet
from ray.cluster_utils import Cluster

from emoglot.batch.cluster import RAY_TELEMETRY, score_on_ray
from emoglot.batch.score import score_file
from emoglot.batch.window import InputColumns
from emoglot.data.formats import format_of

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns of much that is not ours
ROWS = 30_000
STORE = 100 * 2**20  # bytes of memory that a machine shares


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(RAY_TELEMETRY, "0")  # its threads would live on beside other tests
        found = Cluster(initialize_head=True, head_node_args={"num_cpus": 3, "object_store_memory": STORE})
        ray.init(address=found.address, log_to_driver=False, logging_level="ERROR")
        yield found
        ray.shutdown()
        found.shutdown()


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("posts")
    for part in range(6):
        rows = range(part * ROWS // 6, (part + 1) * ROWS // 6)
        texts = [f"post {row} is {('happy', 'furious', 'afraid')[row % 3]}" for row in rows]
        parquet.write_table(pa.table({"id": list(rows), "text": texts}), folder / f"{part}.parquet")
    return folder


def read_folder(folder: Path) -> list[dict]:
    assert (folder / "_SUCCESS").exists()
    found = [row for path in folder.glob("*.parquet") for row in parquet.read_table(path).to_pylist()]
    return sorted(found, key=lambda row: row["id"])


def test_a_worker_that_dies_loses_no_row(cluster, posts, model_folder, tmp_path):
    """The output is that of one machine, although the second machine is gone before the end."""
    place, columns = ModelSource(model_folder, None, None, None), InputColumns("text")
    worker = cluster.add_node(num_cpus=1, object_store_memory=STORE)
    cluster.wait_for_nodes()
    finished = threading.Event()
    killed = threading.Event()

    def kill_in_the_middle() -> None:
        # Once there is output, both machines are at work.
        while not finished.is_set() and not list((tmp_path / "ray").glob("*.parquet")):
            time.sleep(0.05)
        if not finished.is_set():
            killed.set()  # first, since removing a machine also waits until its processes are gone
        cluster.remove_node(worker, allow_graceful=False)

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    score_on_ray(str(posts), str(tmp_path / "ray"), "parquet", "parquet", columns, place, actors=2)
    finished.set()
    killer.join()
    assert killed.is_set()
    found = read_folder(tmp_path / "ray")
    assert [row["id"] for row in found] == list(range(ROWS))
    whole = pa.concat_tables([parquet.read_table(path) for path in sorted(posts.glob("*.parquet"))])
    parquet.write_table(whole, tmp_path / "in.parquet")
    names = str(tmp_path / "in.parquet"), str(tmp_path / "out.parquet")
    score_file(*names, format_of(names[1], None), columns, place)
    for ours, theirs in zip(parquet.read_table(tmp_path / "out.parquet").to_pylist(), found, strict=True):
        assert (ours["id"], ours["text"], ours["labels"]) == (theirs["id"], theirs["text"], theirs["labels"])
        assert ours["joy"] == pytest.approx(theirs["joy"], abs=1e-6)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_other_formats_and_urls(cluster, kind, model_folder, tmp_path):
    rows = [{"id": "007", "text": "so happy, truly"}, {"id": "008", "text": 'I "hate" it'}]
    source = tmp_path / f"in.{kind}"
    if kind == "csv":
        with source.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ["id", "text"])
            writer.writeheader()
            writer.writerows(rows)
    else:
        source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    place = ModelSource(model_folder, None, None, None)
    target = tmp_path / "out"
    score_on_ray(source.as_uri(), target.as_uri(), kind, kind, InputColumns("text"), place, prefix="e_", actors=1)
    files = [path for path in target.iterdir() if path.name != "_SUCCESS"]
    if kind == "csv":
        found = [row for path in files for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())]
    else:
        found = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    model = emoglot.load(model_folder)
    for row, wanted, prediction in zip(found, rows, model.predict([row["text"] for row in rows]), strict=True):
        assert {name: row[name] for name in wanted} == wanted
        labels = row["e_labels"].split(",") if kind == "csv" else row["e_labels"]
        assert [name for name in labels if name] == list(prediction.labels)
        assert float(row["e_joy"]) == pytest.approx(prediction.scores["joy"], abs=1e-5)


def test_invalid_arguments_are_refused(cluster, posts, model_folder, tmp_path):
    place, columns = ModelSource(model_folder, None, None, None), InputColumns("text")
    with pytest.raises(UsageError, match="already exists"):
        score_on_ray(str(posts), str(tmp_path), "parquet", "parquet", columns, place)
    with pytest.raises(UsageError, match="write one of"):
        score_on_ray(str(posts), str(tmp_path / "o"), "parquet", "tsv", columns, place)
    with pytest.raises(DataError, match="cannot be read"):
        score_on_ray(str(tmp_path / "none.csv"), str(tmp_path / "o"), "csv", "csv", columns, place)
    with pytest.raises(UsageError, match="not supported on a cluster"):
        score_on_ray(str(posts), str(tmp_path / "o"), "parquet", "csv", columns, ModelSource(None, None, None, "code"))
