#!/usr/bin/python3
"""Calls any method of a gRPC server with reflection; needs no proto files.

    generic.py list
    generic.py describe perceptron.v1.ModelService
    generic.py describe perceptron.v1.GetModelRequest
    generic.py call perceptron.v1.ModelService/GetModel '{"name": "models/spam"}'
    generic.py call perceptron.v1.PredictionService/PredictStream FIRST SECOND ...

Requests and answers are JSON, one answer a line. A stream of requests ends with the last one given.
"""

import argparse
import sys

import grpc
from google.protobuf import descriptor_pb2, json_format, message

import connection
import flag_types
import reflection


def parse_flags() -> argparse.Namespace:
    flags = connection.parser(__doc__)
    verbs = flags.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="the server's services")
    describe = verbs.add_parser("describe", help="a service's methods, or a message's fields")
    describe.add_argument("name", type=flag_types.utf8, help="the full name")
    call = verbs.add_parser("call", help="call a method")
    call.add_argument("method", type=flag_types.utf8, help="SERVICE/METHOD")
    call.add_argument("requests", type=flag_types.utf8, nargs="*", default=["{}"], metavar="JSON", help="the request; several for a stream of them (default: {})")
    return flags.parse_args()


def describe(server: reflection.ServerDescriptors, name: str) -> None:
    if name in server.services():
        print("\n".join(reflection.signatures(server.service(name))))
        return
    described = descriptor_pb2.DescriptorProto()
    server.message(name).CopyToProto(described)
    for field in described.field:
        repeated = "repeated " if field.label == field.LABEL_REPEATED else ""
        kind = field.type_name.removeprefix(".") or field.Type.Name(field.type).removeprefix("TYPE_").lower()
        print(f"{repeated}{kind} {field.name} = {field.number}")


def json(server: reflection.ServerDescriptors, answer: message.Message) -> str:
    """Returns the message as one line of JSON. Types in an Any are read from the server too."""
    return json_format.MessageToJson(answer, indent=None, descriptor_pool=server)


def call(channel: grpc.Channel, server: reflection.ServerDescriptors, path: str, texts: list[str]) -> None:
    service, _, name = path.partition("/")
    method = server.service(service).methods_by_name.get(name)
    if method is None:
        raise reflection.NotDescribed(f"{service} has no method {name}; it has:\n  " + "\n  ".join(reflection.signatures(server.service(service))))
    request_class = reflection.message_class(method.input_type)
    answer_class = reflection.message_class(method.output_type)
    # Every kind of method can be called as a bidirectional stream: they are equal on the wire.
    invoke = channel.stream_stream(f"/{path}", request_serializer=request_class.SerializeToString, response_deserializer=answer_class.FromString)
    requests = [json_format.Parse(text, request_class(), descriptor_pool=server) for text in texts]
    for answer in invoke(iter(requests)):
        print(json(server, answer), flush=True)


def say_error(server: reflection.ServerDescriptors, error: grpc.RpcError) -> None:
    """Prints gRPC's error and the details of the server (google.rpc.Status)."""
    connection.complain(f"{error.code().name}: {error.details()}")
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = reflection.message_class(server.message("google.rpc.Status")).FromString(value)
            for detail in status.details:
                print(json(server, detail), file=sys.stderr)


def main() -> int:
    flags = parse_flags()
    channel = connection.channel(flags)
    server = reflection.ServerDescriptors(channel)
    try:
        if flags.verb == "list":
            print("\n".join(server.services()))
        elif flags.verb == "describe":
            describe(server, flags.name)
        else:
            call(channel, server, flags.method, flags.requests)
    except (reflection.NotDescribed, json_format.ParseError) as error:
        connection.complain(str(error))
        return 1
    except grpc.RpcError as error:
        say_error(server, error)
        return 1
    return 0


if __name__ == "__main__":
    try:
        exit_code = main()
    except KeyboardInterrupt:
        connection.complain("interrupted")
        exit_code = 130
    connection.leave(exit_code)
