"""Time, memory, accuracy and AUC of one method on one problem, as one JSON line.

Seconds are those of the processor, summed over threads: what else the machine does then hardly matters. Runs in the
peers' environments too, so it knows numpy only.
"""

import contextlib
import io
import json
import math
import multiprocessing
import resource
import signal
import sys
import time

import numpy as np


def serve(methods, path, seed, limit, names):
    """One JSON line for each method named, each measured in a process of its own that is forked from this one."""
    with np.load(path) as arrays:
        problem = {name: arrays[name] for name in arrays.files}
    for name in names:
        line = forked(lambda name=name: measured(methods[name], problem, seed), limit)
        print(json.dumps({"method": name} | (line or {"error": f"over {limit:g} s"})), flush=True)


def forked(work, limit):
    """What ``work`` returns in a forked process, None if that takes more seconds of processor time than the limit."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def limited():
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 5))
        sender.send(work())

    child = context.Process(target=limited)
    child.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(20 * limit) else None
    except EOFError:
        child.join()
        late = child.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
        return None if late else {"error": f"the process died (exit code {child.exitcode})"}
    finally:
        child.kill()
        child.join()


def measured(method, problem, seed):
    """Fit once to a tiny problem, so that nobody pays for loading code, then to the real one."""
    out = {}
    sys.stdout = sys.stderr = io.StringIO()  # some peers print each epoch; a forked process may redirect for good
    try:
        with contextlib.suppress(Exception):
            method(tiny(problem), seed)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        score = method(problem, seed)
        out["seconds"] = time.process_time() - start
        out["fit_mib"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        scores = np.asarray(score(problem["X_test"]), float)
        y = problem["y_test"]
        if (2 * problem["counts"] == problem["sizes"]).all() and np.mean((scores > 0) == (y == 1)) < 0.5:
            scores = -scores  # totals of balanced bags cannot tell the sign: every method gets the better one
        out["accuracy"] = float(np.mean((scores > 0) == (y == 1)))
        if len(np.unique(scores)) > 2:
            out["auc"] = auc(scores, y)
    except Exception as error:
        out["error"] = f"{type(error).__name__}: {error}"[:200]
    return out


def tiny(problem, most=40):
    """The first bags of a problem."""
    n = int(problem["sizes"][:most].sum())
    cut = {"X": n, "labels": n, "sizes": most, "counts": most}
    return {name: value[: cut[name]] if name in cut else value for name, value in problem.items()}


def auc(scores, y):
    """Probability that a positive scores above a negative, ties counted half."""
    _, rank, n = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(n) - (n - 1) / 2
    positives = int((y == 1).sum())
    return float((middle[rank][y == 1].sum() - positives * (positives + 1) / 2) / (positives * (len(y) - positives)))
