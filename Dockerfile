# perceptrond in a container: the two programs, the libraries they load, and nothing else; as a user, not as root.
#   docker build -t perceptrond .        buildah build --format docker -t perceptrond .
# Arguments:
#   BINARIES   compiled (default): from this source. given: those in build/bin, made on a Debian 12 before; saves the minutes of
#              compiling where that was done anyway
#   REVISION   what the source is, for --version and the image's labels: $(git describe --always --dirty)
#   JOBS       compilers at once; each takes up to 1 GiB (default: a processor each)
#   BASE       the Debian 12 to build on, by its digest: the same bytes for everybody
# tests/deploy/container_test.py builds and runs it without an engine or a registry. docs/operate.md says how to run it.
ARG BINARIES=compiled
ARG BASE=debian:bookworm-20260918-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251

FROM ${BASE} AS toolchain
WORKDIR /source
COPY deploy/install_packages.sh deploy/packages.txt deploy/
RUN sh deploy/install_packages.sh build

FROM toolchain AS compiled
ARG REVISION=unknown
ARG JOBS=
COPY CMakeLists.txt ./
COPY proto proto
COPY core core
COPY client client
COPY server server
RUN cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DPERCEPTROND_TESTS=OFF -DPERCEPTROND_MANUAL=OFF \
      -DPERCEPTROND_REVISION="$REVISION" \
 && cmake --build build --target perceptrond perceptronctl -j "${JOBS:-$(nproc)}" \
 && install -D -t /programs build/bin/perceptrond build/bin/perceptronctl

FROM toolchain AS given
COPY build/bin/perceptrond build/bin/perceptronctl /programs/

# What the programs need of the system, in a tree of its own: their libraries, a user, a place for the data.
FROM ${BINARIES} AS collected
COPY deploy/image deploy/image
RUN sh deploy/image/collect.sh /programs /collected

FROM scratch
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="perceptrond" \
      org.opencontainers.image.description="A gRPC server that holds perceptrons and learns online from streamed examples" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="scratch"
COPY --from=collected /collected /
ENV PATH=/usr/bin \
    PERCEPTROND_ADDRESS=0.0.0.0:7600 \
    PERCEPTROND_METRICS_ADDRESS=0.0.0.0:7601 \
    PERCEPTROND_DATA_DIR=/var/lib/perceptrond
# By number: Kubernetes can tell that it is not root.
USER 65532:65532
WORKDIR /var/lib/perceptrond
VOLUME /var/lib/perceptrond
EXPOSE 7600 7601
# It drains, for at most --drain-timeout (30 s): give it longer than the engine's 10 s, as in docker stop -t 40.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/usr/bin/perceptronctl", "health", "--timeout", "4"]
ENTRYPOINT ["/usr/bin/perceptrond"]
