# Serves a study in /data on port 8000:
#   docker build -t crowdrank .
#   docker run -p 8000:8000 -v "$PWD":/data crowdrank items.csv --host 0.0.0.0
FROM python:3.12-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/crowdrank && /opt/crowdrank/bin/pip install --no-cache-dir ".[server,reports]"
# Compiled code holds for the kind of processor that builds the image; on others it is made anew and added.
RUN NUMBA_CACHE_DIR=/opt/crowdrank/numba /opt/crowdrank/bin/crowdrank models --compile && \
    chmod -R a+rwX /opt/crowdrank/numba

FROM python:3.12-slim
RUN useradd --create-home --uid 1000 crowdrank && mkdir /data && chown crowdrank /data
COPY --from=build /opt/crowdrank /opt/crowdrank
ENV PATH=/opt/crowdrank/bin:$PATH PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/opt/crowdrank/numba OPENBLAS_NUM_THREADS=1
USER 1000
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD \
    ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["crowdrank", "serve"]
CMD ["--help"]
