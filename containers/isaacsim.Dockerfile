# Isaac Lab's packages beside NVIDIA's Isaac Sim image: PhysX and RTX. Built by `nox -s build`, which makes the context.
# It does not accept NVIDIA's licence for anybody: a run does, with --accept-eula. For the classic builder.
# Not built by us so far: see images.toml.
ARG BASE
FROM ${BASE} AS environments

USER root
# Kit's own interpreter, because Kit's extension modules load into no other.
ARG PYTHON=/isaac-sim/kit/python/bin/python3
COPY host/ /tmp/host/
COPY pins/suite.txt /tmp/pins/suite.txt
RUN . /tmp/host/settings.sh \
 && ${PYTHON} -m venv /opt/labscale/suite \
 && /opt/labscale/suite/bin/python -m pip install --no-cache-dir --disable-pip-version-check --progress-bar off \
      --require-hashes --requirement /tmp/pins/suite.txt
COPY pins/worker.txt /tmp/pins/worker.txt
RUN . /tmp/host/settings.sh \
 && /opt/labscale/suite/bin/uv venv --python ${PYTHON} /opt/labscale/worker \
 && /opt/labscale/suite/bin/uv pip install --python /opt/labscale/worker/bin/python --no-cache --compile-bytecode --quiet \
      --require-hashes --build-constraints /tmp/pins/worker.txt --requirements /tmp/pins/worker.txt
# python.sh puts Isaac Sim's modules on the path, then starts the Python that PYTHONEXE names.
RUN mkdir -p /opt/labscale/bin \
 && printf '%s\n' '#!/bin/sh' 'export PYTHONEXE=/opt/labscale/worker/bin/python' 'exec /isaac-sim/python.sh "$@"' \
      > /opt/labscale/bin/worker-python \
 && chmod 755 /opt/labscale/bin/worker-python


FROM ${BASE}
USER root
COPY --from=environments /opt/labscale/ /opt/labscale/
COPY project/ /opt/labscale/project/
# Kit writes below its own folder and the user's home: every such place is made writable, and can be a volume.
RUN groupadd --non-unique --gid 1000 labscale \
 && useradd --non-unique --uid 1000 --gid 1000 --home-dir /var/lib/labscale --create-home --shell /bin/sh labscale \
 && mkdir -p /var/cache/labscale /isaac-sim/kit/cache /isaac-sim/kit/logs /isaac-sim/kit/data \
 && chmod 1777 /var/cache/labscale /isaac-sim/kit/cache /isaac-sim/kit/logs /isaac-sim/kit/data \
 && chmod 755 /isaac-sim
ENV HOME=/var/lib/labscale \
    LABSCALE_CACHE=/var/cache/labscale \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics,display
VOLUME /var/cache/labscale /isaac-sim/kit/cache
WORKDIR /opt/labscale/project
# labscale, as numbers: clusters that refuse root (runAsNonRoot) take no name.
USER 1000:1000
ENTRYPOINT []
CMD ["/opt/labscale/suite/bin/python", "-m", "suite", "env_check", "--stack", "isaacsim"]
