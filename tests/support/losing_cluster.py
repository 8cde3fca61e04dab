"""A cluster that loses ranks, and with them all objects, as often as a test says."""

from __future__ import annotations

from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import GangLost


class LosingCluster(InProcessCluster):
    """Ranks of this process that are lost as often as a test says: calls fail, and all objects are gone."""

    on_loss = "rebuild"

    def __init__(self, num_ranks: int = 2, left: int = 2) -> None:
        super().__init__(num_ranks)
        self.losses = 0
        self.left = left
        # The jobs on stored objects until now, and the number of the one that is lost; 0 for none.
        self.jobs = 0
        self.lost_job = 0

    def lose(self) -> None:
        self.losses -= 1
        for objects in self._objects:
            objects.clear()
        raise GangLost(1, "tcp://lost", "killed by a test")

    def run_on_stored(self, function, *args):
        self.jobs += 1
        if self.losses > 0 or self.jobs == self.lost_job:
            self.lose()
        return self.run(function, *args)

    def remaining(self):
        return self if self.left == self.num_ranks else self.narrowed(self.left)
