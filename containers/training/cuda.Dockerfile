# Training image for `base: cuda`, built on a plain nvidia/cuda image (Ubuntu, x86_64). BASE_IMAGE is its name with the digest of the
# lock file. A runtime image is sufficient, because PyTorch's wheel contains NCCL. GDRCopy is not installed: only GPU-initiated
# networking needs it.
ARG BASE_IMAGE

FROM ${BASE_IMAGE} AS build
ARG PYTORCH_VERSION=2.13.0
COPY scripts /opt/slipway/build
RUN bash /opt/slipway/build/system-packages.sh gcc libc6-dev python3 python3-venv \
    && bash /opt/slipway/build/build-hostname-shim.sh /opt/slipway/lib \
    && bash /opt/slipway/build/install-pytorch.sh /opt/venv \
    && bash /opt/slipway/build/install-tools.sh /opt/venv/bin/python /opt/slipway/lib

FROM ${BASE_IMAGE}
ARG BASE_IMAGE
ARG PYTORCH_VERSION=2.13.0
# The version in AWS's PyTorch 2.13 image. With EFA_INSTALLER_SHA256, the build requires this checksum.
ARG EFA_INSTALLER_VERSION=1.49.0
ARG EFA_INSTALLER_SHA256=
COPY scripts /opt/slipway/build
# torch.compile needs a C compiler for Triton. The mpi launcher does not need ssh: the drivers start Open MPI's daemons.
RUN bash /opt/slipway/build/system-packages.sh --purge ca-certificates curl gcc libc6-dev python3 python3-dev \
    && bash /opt/slipway/build/install-efa.sh \
    && bash /opt/slipway/build/nccl-settings.sh \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/slipway/lib /opt/slipway/lib
ENV PATH=/opt/venv/bin:/opt/amazon/openmpi/bin:/opt/amazon/efa/bin:${PATH} \
    LD_LIBRARY_PATH=/opt/amazon/ofi-nccl/lib:/opt/amazon/efa/lib:/opt/amazon/openmpi/lib:/usr/local/cuda/lib64:${LD_LIBRARY_PATH}
# Variables of the AWS guide; the driver unsets those that are harmful on the instance type in use (docs/decisions/0004).
ENV FI_PROVIDER=efa \
    NCCL_PROTO=simple
# A failed self-test ends the build. versions.json stays in the image.
RUN python3 /opt/slipway/build/self_test.py --output /opt/slipway/versions.json \
    && rm -r /opt/slipway/build
LABEL org.opencontainers.image.title="slipway training image" \
      org.opencontainers.image.base.name="${BASE_IMAGE}" \
      io.slipway.pytorch="${PYTORCH_VERSION}" \
      io.slipway.efa-installer="${EFA_INSTALLER_VERSION}"
