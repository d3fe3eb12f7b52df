"""What the server says of an error: its code, the reason for programs, the fields, and when to try again."""

from typing import Optional

import grpc
from google.rpc import error_details_pb2, status_pb2

CODES = {code.value[0]: code for code in grpc.StatusCode}
# Where gRPC carries the google.rpc.Status of a call that failed.
DETAILS = "grpc-status-details-bin"


class StatusError(Exception):
    """An error that came within a stream's answers (google.rpc.Status), not as the call's own."""

    def __init__(self, status: status_pb2.Status):
        super().__init__(describe_status(status))
        self.status = status

    def code(self) -> grpc.StatusCode:
        return CODES.get(self.status.code, grpc.StatusCode.UNKNOWN)


def status_of(error: grpc.RpcError) -> status_pb2.Status:
    """The details that the server sent, or what gRPC itself says where no server answered."""
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS:
            return status_pb2.Status.FromString(value)
    return status_pb2.Status(code=error.code().value[0], message=error.details() or "")


def error_info(status: status_pb2.Status) -> Optional[error_details_pb2.ErrorInfo]:
    """The reason and its facts: what programs compare, never the message."""
    info = error_details_pb2.ErrorInfo()
    return info if any(detail.Unpack(info) for detail in status.details) else None


def reason(error: grpc.RpcError) -> str:
    """"MODEL_NOT_FOUND", ...; empty if it did not come from the server."""
    info = error_info(status_of(error))
    return info.reason if info else ""


def describe(error: grpc.RpcError) -> str:
    return describe_status(status_of(error))


def describe_status(status: status_pb2.Status) -> str:
    """In a line or two for people."""
    info = error_info(status)
    code = CODES.get(status.code, grpc.StatusCode.UNKNOWN).name
    text = f"{code} ({info.reason}): {status.message}" if info else f"{code}: {status.message}"
    bad = error_details_pb2.BadRequest()
    for detail in status.details:
        if detail.Unpack(bad):
            text += "".join(f"\n  {violation.field}: {violation.description}" for violation in bad.field_violations
                            if violation.description not in status.message)
    return text
