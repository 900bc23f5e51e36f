"""Plays rounds by single steps, which a real SIGINT ends now and then; prints what it saw.

The same committee goes on after every interrupt. At the end it is compared with one that played the
rounds that count without any.
"""

import os
import signal
import sys
import threading

import numpy as np

import driftline as dl

INTERRUPTS, ROUNDS, MOST = 17, 8, 5000

signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
X, Y = rng.standard_normal((50, 5)), rng.integers(0, 3, 50)
task = dl.tasks.Multiclass(3)
learner, other = dl.auto(task), dl.auto(task)
for one in (learner, other):
    one.run(X[:20], Y[:20])
    one.step(X[0], Y[0])
moments, seen = rng.exponential(0.005, INTERRUPTS).tolist(), 0


for moment in moments:
    timer = threading.Timer(moment, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        for _ in range(MOST):
            t = learner.rounds % 50
            learner.step(X[t], Y[t])
        timer.join()  # the interrupt comes here if not before
    except KeyboardInterrupt:
        seen += 1
    for _ in range(ROUNDS):  # a committee in two halves would refuse
        t = learner.rounds % 50
        learner.step(X[t], Y[t])
while other.rounds < learner.rounds:
    t = other.rounds % 50
    other.step(X[t], Y[t])
alike = learner.to_saved()[0] == other.to_saved()[0]
pairs = zip(learner.to_saved()[1].values(), other.to_saved()[1].values(), strict=True)
alike = alike and all(np.array_equal(a, b) for a, b in pairs)
print(f"{seen} interrupts, {'the same' if alike else 'another'} state")
sys.exit(0 if alike and seen == INTERRUPTS else 1)
