"""The backend `mgraph` of NetworkX: its graphs converted, its functions served, and which calls are worth it.

NetworkX finds `info.py` and `interface.py` by the entry points of the package, and loads the second at the first call.
`graph.py` converts; `ranks.py` builds what is converted on a cluster; `searches.py` brings results into NetworkX's
order. A module beside them has the functions of one part of NetworkX, with its parameters, errors and types.
"""
