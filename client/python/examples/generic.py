#!/usr/bin/python3
"""Calls any method of a gRPC server with reflection; needs no proto files, nor what is made of them.

    generic.py list
    generic.py describe perceptron.v1.ModelService
    generic.py describe perceptron.v1.GetModelRequest
    generic.py call perceptron.v1.ModelService/GetModel '{"name": "models/spam"}'
    generic.py call perceptron.v1.PredictionService/PredictStream FIRST SECOND ...

Requests and answers are JSON, one answer a line. A stream of requests ends with the last one given.
"""

import argparse
import sys
from typing import Iterator

import grpc
from google.protobuf import descriptor, descriptor_pb2, descriptor_pool, json_format, message, message_factory

from perceptrond.channels import channel as open_channel

import flags as flag

# Descriptors of a server's services by grpc.reflection.v1alpha, without proto files. The messages of the reflection
# service are declared here, with the published field numbers.
PACKAGE = "grpc.reflection.v1alpha"
STRING, BYTES, INT32, MESSAGE = (descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{name}") for name in ("STRING", "BYTES", "INT32", "MESSAGE"))
# message: (field, number, type, message type, repeated)
MESSAGES = {
    "ServerReflectionRequest": [("file_by_filename", 3, STRING, "", False), ("file_containing_symbol", 4, STRING, "", False),
                                ("list_services", 7, STRING, "", False)],
    "ServerReflectionResponse": [("file_descriptor_response", 4, MESSAGE, "FileDescriptorResponse", False),
                                 ("list_services_response", 6, MESSAGE, "ListServiceResponse", False),
                                 ("error_response", 7, MESSAGE, "ErrorResponse", False)],
    "FileDescriptorResponse": [("file_descriptor_proto", 1, BYTES, "", True)],
    "ListServiceResponse": [("service", 1, MESSAGE, "ServiceResponse", True)],
    "ServiceResponse": [("name", 1, STRING, "", False)],
    "ErrorResponse": [("error_code", 1, INT32, "", False), ("error_message", 2, STRING, "", False)],
}


class NotDescribed(Exception):
    """The server has no description of this name."""


def _reflection_pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="reflection.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, of, repeated in fields:
            # The fields are a oneof, so that the empty string counts as set.
            alternative = name.startswith("ServerReflection")
            if alternative and not message.oneof_decl:
                message.oneof_decl.add(name="message")
            message.field.add(name=field, number=number, type=kind, type_name=f".{PACKAGE}.{of}" if of else None,
                              label=3 if repeated else 1, oneof_index=0 if alternative else None)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def message_class(described: descriptor.Descriptor) -> type:
    if hasattr(message_factory, "GetMessageClass"):  # protobuf 4.22 and later
        return message_factory.GetMessageClass(described)
    return message_factory.MessageFactory(described.file.pool).GetPrototype(described)


class ServerDescriptors:
    """Services and messages by full name, fetched when first used."""

    def __init__(self, channel: grpc.Channel):
        reflection = _reflection_pool()
        self._request = message_class(reflection.FindMessageTypeByName(f"{PACKAGE}.ServerReflectionRequest"))
        answer = message_class(reflection.FindMessageTypeByName(f"{PACKAGE}.ServerReflectionResponse"))
        self._ask_stream = channel.stream_stream(f"/{PACKAGE}.ServerReflection/ServerReflectionInfo",
                                                 request_serializer=self._request.SerializeToString, response_deserializer=answer.FromString)
        self._pool = descriptor_pool.DescriptorPool()
        self._files: set[str] = set()

    def services(self) -> list[str]:
        return [service.name for service in self._ask(list_services="*").list_services_response.service]

    def service(self, name: str) -> descriptor.ServiceDescriptor:
        self._fetch(file_containing_symbol=name)
        return self._found(self._pool.FindServiceByName, name)

    def message(self, name: str) -> descriptor.Descriptor:
        self._fetch(file_containing_symbol=name)
        return self._found(self._pool.FindMessageTypeByName, name)

    def FindMessageTypeByName(self, name: str) -> descriptor.Descriptor:  # as json_format asks a descriptor pool
        try:
            return self.message(name)
        except NotDescribed as error:
            raise KeyError(str(error)) from None

    def _found(self, find, name: str):
        try:
            return find(name)
        except KeyError:
            raise NotDescribed(f"the server does not describe {name}") from None

    def _ask(self, **question: str):
        (answer,) = self._ask_stream(iter([self._request(**question)]), timeout=30)
        if answer.HasField("error_response"):
            (what,) = question.values()
            raise NotDescribed(f"{answer.error_response.error_message} ({what})")
        return answer

    def _fetch(self, **question: str) -> None:
        """Adds the files of an answer, after the files they import."""
        for data in self._ask(**question).file_descriptor_response.file_descriptor_proto:
            file = descriptor_pb2.FileDescriptorProto.FromString(data)
            if file.name in self._files:
                continue
            self._files.add(file.name)
            for imported in file.dependency:
                if imported not in self._files:
                    self._fetch(file_by_filename=imported)
            self._pool.AddSerializedFile(data)


def signatures(service: descriptor.ServiceDescriptor) -> Iterator[str]:
    """Returns each method as in a proto file."""
    described = descriptor_pb2.ServiceDescriptorProto()
    service.CopyToProto(described)
    for method in described.method:
        takes, answers = ("stream " * streaming + name.removeprefix(".") for streaming, name in
                          ((method.client_streaming, method.input_type), (method.server_streaming, method.output_type)))
        yield f"rpc {method.name}({takes}) returns ({answers})"


def parse_flags() -> argparse.Namespace:
    flags = flag.parser(__doc__)
    verbs = flags.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="the server's services")
    describe = verbs.add_parser("describe", help="a service's methods, or a message's fields")
    describe.add_argument("name", type=flag.utf8, help="the full name")
    call = verbs.add_parser("call", help="call a method")
    call.add_argument("method", type=flag.utf8, help="SERVICE/METHOD")
    call.add_argument("requests", type=flag.utf8, nargs="*", default=["{}"], metavar="JSON", help="the request; several for a stream of them (default: {})")
    return flags.parse_args()


def describe(server: ServerDescriptors, name: str) -> None:
    if name in server.services():
        print("\n".join(signatures(server.service(name))))
        return
    described = descriptor_pb2.DescriptorProto()
    server.message(name).CopyToProto(described)
    for field in described.field:
        repeated = "repeated " if field.label == field.LABEL_REPEATED else ""
        kind = field.type_name.removeprefix(".") or field.Type.Name(field.type).removeprefix("TYPE_").lower()
        print(f"{repeated}{kind} {field.name} = {field.number}")


def json(server: ServerDescriptors, answer: message.Message) -> str:
    """Returns the message as one line of JSON. Types in an Any are read from the server too."""
    return json_format.MessageToJson(answer, indent=None, descriptor_pool=server)


def call(channel: grpc.Channel, server: ServerDescriptors, path: str, texts: list[str]) -> None:
    service, _, name = path.partition("/")
    method = server.service(service).methods_by_name.get(name)
    if method is None:
        raise NotDescribed(f"{service} has no method {name}; it has:\n  " + "\n  ".join(signatures(server.service(service))))
    request_class = message_class(method.input_type)
    answer_class = message_class(method.output_type)
    # Every kind of method can be called as a bidirectional stream: they are equal on the wire.
    invoke = channel.stream_stream(f"/{path}", request_serializer=request_class.SerializeToString, response_deserializer=answer_class.FromString)
    requests = [json_format.Parse(text, request_class(), descriptor_pool=server) for text in texts]
    for answer in invoke(iter(requests)):
        print(json(server, answer), flush=True)


def say_error(server: ServerDescriptors, error: grpc.RpcError) -> None:
    """Prints gRPC's error and the details of the server (google.rpc.Status)."""
    flag.complain(f"{error.code().name}: {error.details()}")
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = message_class(server.message("google.rpc.Status")).FromString(value)
            for detail in status.details:
                print(json(server, detail), file=sys.stderr)


def main() -> int:
    flags = parse_flags()
    channel = open_channel(flag.target_of(flags))
    server = ServerDescriptors(channel)
    try:
        if flags.verb == "list":
            print("\n".join(server.services()))
        elif flags.verb == "describe":
            describe(server, flags.name)
        else:
            call(channel, server, flags.method, flags.requests)
    except (NotDescribed, json_format.ParseError) as error:
        flag.complain(str(error))
        return 1
    except grpc.RpcError as error:
        say_error(server, error)
        return 1
    return 0


if __name__ == "__main__":
    flag.leave_on_interrupt()
    flag.leave(main())
