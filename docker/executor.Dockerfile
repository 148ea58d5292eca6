# The generic executor. It runs programs, so it stands on a small system: derive an image with yours from it.
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=devel
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd ./cmd
COPY internal ./internal
COPY pkg ./pkg
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X github.com/callfan/callfan/internal/config.release=$VERSION" -o /out/executor ./cmd/executor

FROM alpine:3.22.1
ARG VERSION=devel
ARG REVISION=unknown
LABEL org.opencontainers.image.title="callfan executor" \
      org.opencontainers.image.description="Serves functions that are programs, HTTP endpoints and tools of MCP servers" \
      org.opencontainers.image.source="https://github.com/callfan/callfan" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/executor /executor
USER 65532:65532
ENTRYPOINT ["/executor"]
