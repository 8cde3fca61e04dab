# mgraph without CUDA. From the root of the checkout:
#
#   docker build --file deploy/docker/cpu.Dockerfile --tag mgraph:cpu .
#   docker run --rm mgraph:cpu
FROM python:3.13-slim-bookworm
COPY pyproject.toml README.md LICENSE /src/
COPY mgraph /src/mgraph
RUN python3 -m venv /opt/mgraph
ENV PATH=/opt/mgraph/bin:$PATH
RUN pip install --no-cache-dir '/src[io]'
RUN useradd --create-home --uid 10001 mgraph
USER 10001
WORKDIR /home/mgraph
CMD ["mgraph", "graph500", "--scale", "16"]
