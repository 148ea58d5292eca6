# An executor in Rust. In a repository of your own the SDK comes from crates.io.
FROM rust:1.89.0-bookworm AS build
WORKDIR /src
COPY sdk/rust ./sdk/rust
COPY examples/rust ./examples/rust
RUN cargo build --release --manifest-path examples/rust/Cargo.toml --target-dir /out

FROM debian:12.12-slim
LABEL org.opencontainers.image.title="customers" \
      org.opencontainers.image.description="An example executor of callfan in Rust" \
      org.opencontainers.image.source="https://github.com/callfan/callfan" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/release/customers /customers
USER 65532:65532
ENTRYPOINT ["/customers"]
