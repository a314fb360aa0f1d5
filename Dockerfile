# One image for every process of a wallet, the message broker included: it comes as a package, in the version tested.
FROM python:3.13-slim
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY . .
# `make assets` beforehand has fetched what the charts are drawn with; without it pages show plain drawings
RUN pip install -c constraints.txt . \
 && rm -rf /build \
 && useradd --uid 10001 --create-home purse \
 && install -d -o purse -g purse -m 700 /data
WORKDIR /data
USER purse
VOLUME /data
CMD ["purse", "--help"]
