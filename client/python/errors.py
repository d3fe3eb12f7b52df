"""Error details of the server: code, reason, invalid fields, and the wait before a retry."""

from typing import Optional

import grpc
from google.rpc import error_details_pb2, status_pb2

CODES = {code.value[0]: code for code in grpc.StatusCode}
# The trailing metadata with the google.rpc.Status of a failed call.
DETAILS = "grpc-status-details-bin"


class StatusError(Exception):
    """An error within an answer of a stream (google.rpc.Status)."""

    def __init__(self, status: status_pb2.Status):
        super().__init__(describe_status(status))
        self.status = status

    def code(self) -> grpc.StatusCode:
        return CODES.get(self.status.code, grpc.StatusCode.UNKNOWN)


def status_of(error: grpc.RpcError) -> status_pb2.Status:
    """Returns the google.rpc.Status of an error, or gRPC's own status if no server answered."""
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS:
            return status_pb2.Status.FromString(value)
    return status_pb2.Status(code=error.code().value[0], message=error.details() or "")


def error_info(status: status_pb2.Status) -> Optional[error_details_pb2.ErrorInfo]:
    """Returns the ErrorInfo: programs compare its reason, not the message."""
    info = error_details_pb2.ErrorInfo()
    return info if any(detail.Unpack(info) for detail in status.details) else None


def reason(error: grpc.RpcError) -> str:
    """"MODEL_NOT_FOUND", ...; empty if the error is not the server's."""
    info = error_info(status_of(error))
    return info.reason if info else ""


def describe(error: grpc.RpcError) -> str:
    return describe_status(status_of(error))


def describe_status(status: status_pb2.Status) -> str:
    """Returns the error as a line or two of text."""
    info = error_info(status)
    code = CODES.get(status.code, grpc.StatusCode.UNKNOWN).name
    text = f"{code} ({info.reason}): {status.message}" if info else f"{code}: {status.message}"
    bad = error_details_pb2.BadRequest()
    for detail in status.details:
        if detail.Unpack(bad):
            text += "".join(f"\n  {violation.field}: {violation.description}" for violation in bad.field_violations
                            if violation.description not in status.message)
    return text
