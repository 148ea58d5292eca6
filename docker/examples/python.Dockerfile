# An executor in Python. In a repository of your own `pip install callfan` takes the place of the SDK's directory.
FROM python:3.13.9-slim-bookworm AS build
WORKDIR /src
COPY sdk/python ./sdk/python
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --disable-pip-version-check ./sdk/python

FROM python:3.13.9-slim-bookworm
LABEL org.opencontainers.image.title="customers" \
      org.opencontainers.image.description="An example executor of callfan in Python" \
      org.opencontainers.image.source="https://github.com/callfan/callfan" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY --from=build /venv /venv
COPY examples/python/customers.py /app/customers.py
USER 65532:65532
ENTRYPOINT ["/venv/bin/python", "/app/customers.py"]
