"""Random faults on real processes: workers and clients are killed or interrupted in any phase of their work.

A *campaign* (`campaign.py`) draws phases and times. For each it makes a process (`client.py`, or the command line) run
the phase (`phases.py`), injects a fault, and checks its result, the next result, and leftovers (`leftovers.py`).
"""
