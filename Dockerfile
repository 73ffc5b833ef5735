# docker build -t plimsoll .
FROM rust:1.95-slim-trixie AS build
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates cmake gcc g++ make
WORKDIR /src
COPY . .
RUN make dist && mv target/*/dist/plimsoll target/plimsoll

# The binary needs glibc and nothing else: it carries its own cryptography. Triggers that ask servers on the internet trust
# the authorities that everybody trusts.
FROM debian:trixie-slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/target/plimsoll /usr/local/bin/plimsoll
# In the place of metrics-server, prometheus-adapter or KEDA's operator it is called as they are.
RUN ln -s usr/local/bin/plimsoll /metrics-server && ln -s usr/local/bin/plimsoll /adapter && ln -s usr/local/bin/plimsoll /keda
USER 65532:65532
ENTRYPOINT ["plimsoll"]
