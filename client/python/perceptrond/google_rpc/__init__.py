"""google.rpc: Status and the details of errors.

Where googleapis-common-protos is installed, its modules: a process cannot have two of one proto.
"""

try:
    from google.rpc import error_details_pb2, status_pb2
except ImportError:
    from . import error_details_pb2, status_pb2

__all__ = ["error_details_pb2", "status_pb2"]
