"""Settings: their defaults in `mgraph.yaml`, in the form of Dask's configuration, and what reads them."""
