# The service with its model: docker build --tag emoglot . && docker run --rm --read-only --tmpfs /tmp -p 127.0.0.1:8000:8000 emoglot
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src ./src
RUN python -m venv /opt/emoglot \
    && /opt/emoglot/bin/pip install --no-cache-dir --no-compile '.[serve]' \
    && /opt/emoglot/bin/python -m compileall -q /opt/emoglot/lib

FROM python:3.12-slim
COPY --from=build /opt/emoglot /opt/emoglot
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin emoglot
USER 10001
ENV PATH=/opt/emoglot/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    EMOGLOT_HOST=0.0.0.0 \
    EMOGLOT_PORT=8000
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['EMOGLOT_PORT'] + '/readyz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["emoglot"]
CMD ["serve"]
