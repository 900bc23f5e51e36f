"""The service behind ``driftline serve``: models over HTTP, with every request in a log.

The log is the truth. A request is validated, written and committed, then applied, then answered: so
an answer means that its request is on the disk. Everything else (models, tickets, scores, curves)
is a function of the log, and is computed again from it after a crash, bit for bit.

``records`` and ``log`` are the log; ``machine`` is that function; ``hosted`` and ``served`` are
what it moves. They know no threads, no network and no clock, so that tests can play any history
through them. ``writer`` gives the machine a thread, and ``http`` and ``routes`` addresses.
"""
