# Isaac Lab without Isaac Sim: Ubuntu, Python 3.12, the hashed pins, and the GL, EGL and Vulkan userspace. CPU and CUDA.
# Built by `nox -s build`, which makes the context. For the classic builder: no RUN --mount, no heredocs.
ARG BASE
FROM ${BASE} AS graphics

# torch.compile calls a compiler, and wants Python's headers, at run time.
ARG PYTHON_PACKAGES="g++ python3.12 python3.12-dev python3.12-venv"
# Such as mesa-vulkan-drivers, to render in software where no GPU is.
ARG EXTRA_PACKAGES=""
# The loaders alone: drivers come from the host, through the NVIDIA Container Toolkit, with the capability `graphics`.
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
      ca-certificates libegl1 libgl1 libgles2 libglib2.0-0 libglvnd0 libglx0 libgomp1 libopengl0 libvulkan1 \
      libx11-6 libxext6 libxrender1 ${PYTHON_PACKAGES} ${EXTRA_PACKAGES} \
 && rm -rf /var/lib/apt/lists/*

# Toolkits and `apptainer --nv` bring the driver's libraries, not always its manifests. Where they do, theirs are mounted over
# these. VK_DRIVER_FILES keeps a second manifest, from the host's /usr/share/vulkan, from listing every GPU twice.
RUN mkdir -p /usr/share/glvnd/egl_vendor.d /etc/vulkan/icd.d \
 && printf '%s\n' '{"file_format_version": "1.0.0", "ICD": {"library_path": "libEGL_nvidia.so.0"}}' \
      > /usr/share/glvnd/egl_vendor.d/10_nvidia.json \
 && printf '%s\n' '{"file_format_version": "1.0.0", "ICD": {"library_path": "libGLX_nvidia.so.0", "api_version": "1.3.194"}}' \
      > /etc/vulkan/icd.d/nvidia_icd.json
ENV VK_DRIVER_FILES=/etc/vulkan/icd.d/nvidia_icd.json \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics,display

# Any user may write the caches: the launcher runs as whoever called it, so that results are theirs.
RUN if getent passwd ubuntu > /dev/null; then userdel --remove ubuntu; fi \
 && groupadd --gid 1000 labscale \
 && useradd --uid 1000 --gid 1000 --home-dir /var/lib/labscale --create-home --shell /bin/sh labscale \
 && mkdir -p /var/cache/labscale \
 && chmod 1777 /var/cache/labscale


# Its layers hold the host's certificates and index settings; none of them is in the image.
FROM graphics AS environments
ARG PYTHON=python3.12
COPY host/ /tmp/host/
COPY pins/suite.txt /tmp/pins/suite.txt
RUN . /tmp/host/settings.sh \
 && ${PYTHON} -m venv /opt/labscale/suite \
 && /opt/labscale/suite/bin/python -m pip install --no-cache-dir --disable-pip-version-check --progress-bar off \
      --require-hashes --requirement /tmp/pins/suite.txt
COPY pins/worker.txt /tmp/pins/worker.txt
# Compiled here, because nobody may write there later and every rank would compile anew.
RUN . /tmp/host/settings.sh \
 && /opt/labscale/suite/bin/uv venv --python ${PYTHON} /opt/labscale/worker \
 && /opt/labscale/suite/bin/uv pip install --python /opt/labscale/worker/bin/python --no-cache --compile-bytecode --quiet \
      --require-hashes --build-constraints /tmp/pins/worker.txt --requirements /tmp/pins/worker.txt \
 && echo '{"installed_by": "the image"}' > /opt/labscale/worker/complete.json


FROM graphics
COPY --from=environments /opt/labscale/ /opt/labscale/
COPY project/ /opt/labscale/project/
ENV LABSCALE_CACHE=/var/cache/labscale
# Where labscale would install it: so env_check holds it to the pins, and `suite bench` runs inside the image too.
RUN ln -s /opt/labscale/worker \
      "/var/cache/labscale/worker-$(sha256sum /opt/labscale/project/containers/pins/worker.txt | cut -c 1-12)"
VOLUME /var/cache/labscale
WORKDIR /opt/labscale/project
# labscale, as numbers: clusters that refuse root (runAsNonRoot) take no name.
USER 1000:1000
CMD ["/opt/labscale/suite/bin/python", "-m", "suite", "env_check", "--stack", "kitless"]
