# docker build -t plimsoll .
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
RUN make dist && mv target/*/dist/plimsoll target/plimsoll

# The binary needs glibc and nothing else: it carries its own cryptography. Triggers that ask servers on the internet trust
# the authorities that everybody trusts.
FROM ${DEBIAN_IMAGE}
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/target/plimsoll /usr/local/bin/plimsoll
# In the place of metrics-server, prometheus-adapter or KEDA's operator it is called as they are.
RUN ln -s usr/local/bin/plimsoll /metrics-server && ln -s usr/local/bin/plimsoll /adapter && ln -s usr/local/bin/plimsoll /keda
USER 65532:65532
ENTRYPOINT ["plimsoll"]
