# One image for every process of a wallet, the message broker included: it comes as a package, in the version tested.
#   docker build -t commonpurse .
#   docker run --init -p 127.0.0.1:8080:8080 -v purse:/data commonpurse     a whole wallet; its log has the admin key
# The same image each time: name the base by its digest and the moment of the commit.
#   docker build --build-arg BASE=python:3.13-slim-trixie@sha256:... \
#     --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) --output type=docker,rewrite-timestamp=true -t commonpurse .
ARG BASE=python:3.13-slim-trixie

FROM ${BASE} AS build
ARG SOURCE_DATE_EPOCH=1767225600
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
# What is depended on changes less often than what is here: a layer of its own.
COPY pyproject.toml constraints.txt ./
RUN python -m venv --without-pip /opt/purse \
 && python -m pip install -c constraints.txt hatchling \
 && python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" > needed.txt \
 && python -m pip --python /opt/purse/bin/python install -c constraints.txt -r needed.txt
COPY . .
# `make assets` beforehand has fetched what the charts are drawn with; without it pages show plain drawings.
RUN python -m hatchling build -t wheel -d /build/dist \
 && python -m pip --python /opt/purse/bin/python install --no-deps --no-index /build/dist/*.whl

FROM ${BASE}
ENV PATH=/opt/purse/bin:$PATH PYTHONUNBUFFERED=1 PURSE_DATA=/data
RUN useradd --uid 10001 --create-home purse \
 && install -d -o purse -g purse -m 700 /data
COPY --from=build /opt/purse /opt/purse
WORKDIR /data
USER 10001:10001
VOLUME /data
EXPOSE 8080
# Of the whole wallet that runs unless told otherwise; what compose.yaml starts one by one is checked as it says.
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz')"]
CMD ["purse", "up", "--host", "0.0.0.0"]
