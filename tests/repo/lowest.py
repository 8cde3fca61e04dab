"""List the lowest versions that pyproject.toml admits: `python tests/repo/lowest.py > tests/lowest.txt`.

The list is a file of constraints: `pip install -c tests/lowest.txt -e '.[test]'` installs what the tests need in these
versions. CUDA extras are not in it: their versions belong to a driver.
"""

from __future__ import annotations

import pathlib
import sys
import tomllib

from packaging.requirements import Requirement

ROOT = pathlib.Path(__file__).parents[2]
EXTRAS = ("io", "networkx", "plot", "scipy", "test")
HEAD = "# The lowest versions that pyproject.toml admits, made by tests/repo/lowest.py: a file of constraints for pip."


def lowest(pyproject: str) -> str:
    """Return the constraints for the text of a pyproject.toml."""
    project = tomllib.loads(pyproject)["project"]
    texts = [*project["dependencies"], *(one for extra in EXTRAS for one in project["optional-dependencies"][extra])]
    bounds = {requirement.name: _bound(requirement) for requirement in map(Requirement, texts)}
    return "\n".join([HEAD, *(f"{name}=={bound}" for name, bound in sorted(bounds.items()))]) + "\n"


def _bound(requirement: Requirement) -> str:
    (bound,) = (part.version for part in requirement.specifier if part.operator == ">=")
    return bound


if __name__ == "__main__":
    sys.stdout.write(lowest((ROOT / "pyproject.toml").read_text()))
