"""A connection that pushes belongs to its process: the copy of a forked child is inert."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import json, os, sys
import numpy as np
import olaf

def told(connection):
    said = []
    weights = np.zeros(4, np.float32)
    for use in (
        lambda: connection.push(weights),
        lambda: connection.pull(weights),
        lambda: connection.wait(0.1),
        connection.stats,
        lambda: connection.worker,
    ):
        try:
            said.append(f"nothing: {use()}")
        except RuntimeError as error:
            said.append(str(error))
    return said

with olaf.local() as job:
    reading, writing = os.pipe()
    with olaf.connect(job.address, worker=7, quiet=True) as connection:
        weights = np.zeros(4, np.float32)
        connection.join(weights)
        child = os.fork()
        if child == 0:
            os.write(writing, json.dumps(told(connection)).encode())
            connection.close()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        connection.push(np.ones(4, np.float32))
        assert connection.wait(20), "the parent is still in the job"
        connection.pull(weights)
        (worker,) = job.stats()["switch"]["workers"]
    os.close(writing)
    with os.fdopen(reading) as answers:
        said = json.loads(answers.read())
print(json.dumps({"status": status, "said": said, "weights": weights.tolist(),
                  "worker": worker["worker"], "child": child}))
"""


def test_a_child_that_ends_leaves_its_parent_in_the_job() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["status"] == 0, "the child ends normally"
    assert (answer["worker"], answer["weights"]) == (7, [1.0] * 4)
    assert len(answer["said"]) == 5
    for said in answer["said"]:
        assert f"this is process {answer['child']}" in said, answer
