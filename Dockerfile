# docker build -t plimsoll .
# docker buildx build --platform linux/amd64,linux/arm64 -t plimsoll .
#
# The base images are named by tag. A tag can be moved, a digest cannot; but a digest can only be had from the registry, and one that
# is written here without having been pulled and checked pins nothing. It would also keep old packages: updates of Debian come with the
# tag. A release is built with the digests that were pulled and scanned for it:
# --build-arg RUST_IMAGE=rust:1.95.0-slim-trixie@sha256:… --build-arg DEBIAN_IMAGE=debian:trixie-slim@sha256:…
ARG RUST_IMAGE=rust:1.95.0-slim-trixie
ARG DEBIAN_IMAGE=debian:trixie-slim
FROM ${RUST_IMAGE} AS build
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates cmake gcc g++ make
WORKDIR /src
COPY . .
# `--build-arg PLIMSOLL_REVISION=$(git rev-parse HEAD)`: the sources in the image have no repository.
ARG PLIMSOLL_REVISION
RUN make dist && mv target/*/dist/plimsoll target/plimsoll

# The files of the image: the libraries that the program loads, and the CAs that everybody trusts, for triggers that ask servers on
# the internet. `make image` takes the same files from the packages of the Debian release on which it runs, without an engine
# (xtask/src/image/rootfs.rs).
FROM ${DEBIAN_IMAGE} AS files
WORKDIR /packages
RUN apt-get update && apt-get download libc6 libgcc-s1 ca-certificates
RUN for package in *.deb; do dpkg-deb --extract "$package" files || exit 1; done
RUN mkdir -p /rootfs/etc/ssl/certs /rootfs/usr/lib
RUN for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libgcc_s.so.1; do \
      install -m 644 "$(find files -name $name)" /rootfs/usr/lib/ || exit 1; \
    done
# The program names its loader by this path.
RUN loader=$(find files -name 'ld-linux*' -type f) && \
    case "$loader" in *x86-64*) folder=lib64; ln -s usr/lib /rootfs/lib ;; *) folder=lib ;; esac && \
    mkdir -p /rootfs/$folder && install -m 755 "$loader" /rootfs/$folder/
RUN find files/usr/share/ca-certificates -name '*.crt' -print0 | LC_ALL=C sort -z | xargs -0 cat > /rootfs/etc/ssl/certs/ca-certificates.crt
RUN echo 'nonroot:x:65532:65532:nonroot:/:/nologin' > /rootfs/etc/passwd && echo 'nonroot:x:65532:' > /rootfs/etc/group
# In the place of metrics-server, prometheus-adapter or KEDA's operator it is called as they are.
RUN ln -s usr/local/bin/plimsoll /rootfs/metrics-server && ln -s usr/local/bin/plimsoll /rootfs/adapter && ln -s usr/local/bin/plimsoll /rootfs/keda

# No shell and no package manager.
FROM scratch
COPY --from=files /rootfs/ /
COPY --from=build /src/target/plimsoll /usr/local/bin/plimsoll
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/plimsoll"]
