#!/usr/bin/python3
"""Predicts a file of texts through the Open Inference Protocol, of perceptrond or of another server, and counts the errors.

    infer.py spam test.tsv
    infer.py spam test.tsv --server 127.0.0.1:8001      Triton, with a model that perceptrond exported as ONNX

Each line is `label<TAB>text`; the model has named features and named labels. Needs grpc and protoc (Debian's protobuf-compiler), not
perceptrond's package.
"""

import argparse
import collections
import importlib
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
from typing import Any

import grpc

PROTOS = pathlib.Path(__file__).resolve().parent.parent.parent.parent / "proto/inference"
# The words of docs/comparison.md.
WORDS = re.compile(rb"[a-z0-9_']+")


def parse_flags() -> argparse.Namespace:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("model")
    flags.add_argument("file", type=argparse.FileType("rb"), help="lines of label, tab and text")
    flags.add_argument("--server", default=os.environ.get("PERCEPTROND_SERVER") or "127.0.0.1:7600", metavar="ADDRESS",
                       help="host:port or unix:path (default: $PERCEPTROND_SERVER, else 127.0.0.1:7600)")
    flags.add_argument("--wait", type=float, default=0, metavar="SECONDS", help="waits that long for a server that is starting")
    return flags.parse_args()


def make_messages() -> Any:
    """Returns the module that protoc makes of the protocol's messages."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["protoc", f"--proto_path={PROTOS}", f"--python_out={directory}", "inference_service.proto"], check=True)
        sys.path.insert(0, directory)
        try:
            return importlib.import_module("inference_service_pb2")
        finally:
            sys.path.remove(directory)


def request_of(messages: Any, metadata: Any, text: bytes) -> Any:
    """Asks for the label of one row, the counts of the text's words. Raw contents are what every server of the protocol takes."""
    # Servers name this tensor differently.
    names = next((tensor.name for tensor in metadata.inputs if tensor.datatype == "BYTES"), None)
    if names is None:
        sys.exit(f"infer.py: model {metadata.name} has no input of type BYTES; expected a model of named features")
    # A row has at least one place; "" stands for no feature.
    words = collections.Counter(WORDS.findall(text.lower())) or {b"": 0}
    request = messages.ModelInferRequest(model_name=metadata.name, outputs=[{"name": "label"}])
    for name, datatype in ((names, "BYTES"), ("values", "FP32")):
        request.inputs.add(name=name, datatype=datatype, shape=[1, len(words)])
    request.raw_input_contents.append(b"".join(struct.pack("<I", len(word)) + word for word in words))
    request.raw_input_contents.append(struct.pack(f"<{len(words)}f", *words.values()))
    return request


def label_of(answer: Any) -> bytes:
    # An element of BYTES follows its length, which has four bytes.
    return answer.raw_output_contents[0][4:]


def main() -> int:
    flags = parse_flags()
    messages = make_messages()
    channel = grpc.insecure_channel(flags.server)
    if flags.wait:
        try:
            grpc.channel_ready_future(channel).result(flags.wait)
        except grpc.FutureTimeoutError:
            sys.exit(f"infer.py: no server at {flags.server} within {flags.wait:g} seconds")

    def call(method: str, request: Any) -> Any:
        return channel.unary_unary(f"/inference.GRPCInferenceService/{method}", request_serializer=type(request).SerializeToString,
                                   response_deserializer=getattr(messages, f"{method}Response").FromString)(request)

    try:
        metadata = call("ModelMetadata", messages.ModelMetadataRequest(name=flags.model))
        rows = (line.partition(b"\t") for line in flags.file)
        errors = sum(label_of(call("ModelInfer", request_of(messages, metadata, text))) != label for label, _, text in rows)
    except grpc.RpcError as error:
        print(f"infer.py: {error.code().name}: {error.details()}", file=sys.stderr)
        return 1
    print(f"errors: {errors}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
