"""Random faults on real processes: workers and clients that are killed or interrupted in any phase of their work.

A *campaign* (`campaign.py`) draws phases and moments, lets a process (`client.py`, or the command line) do the phase
(`phases.py`), strikes, and asks for the answer, for the next answer and for what is left (`leftovers.py`).
"""
