"""A server without tables of names, as servers were before them: a proxy that refuses a stream that asks for one, and passes
everything else on to a real server."""

import concurrent.futures
import itertools

import grpc
from perceptrond.google_rpc import error_details_pb2, status_pb2
from perceptrond.v1 import learning_service_pb2, prediction_service_pb2

DETAILS = "grpc-status-details-bin"
STREAMS = {"/perceptron.v1.LearningService/LearnStream": learning_service_pb2.LearnStreamRequest,
           "/perceptron.v1.PredictionService/PredictStream": prediction_service_pb2.PredictRequest}


class OldServer(grpc.GenericRpcHandler):
    """A context manager."""

    def __init__(self, address):
        """address: of the real server."""
        self._channel = grpc.insecure_channel(address)
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), handlers=[self])
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        # How many streams it refused.
        self.refused = 0

    def service(self, details):
        return grpc.stream_stream_rpc_method_handler(lambda requests, context: self._pass_on(details.method, requests, context))

    def _pass_on(self, method, requests, context):
        first = next(requests)
        if method in STREAMS and STREAMS[method].FromString(first).name_table_size > 0:
            self.refused += 1
            self._refuse(context)
        call = self._channel.stream_stream(method)(itertools.chain([first], requests))
        context.add_callback(call.cancel)
        try:
            yield from call
        except grpc.RpcError as error:
            context.set_trailing_metadata([(key, value) for key, value in error.trailing_metadata() if key == DETAILS])
            context.abort(error.code(), error.details())

    def _refuse(self, context):
        status = status_pb2.Status(code=3, message="name_table_size: this version does not support it")
        status.details.add().Pack(error_details_pb2.ErrorInfo(reason="UNSUPPORTED_FIELD", domain="perceptrond"))
        context.set_trailing_metadata([(DETAILS, status.SerializeToString())])
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, status.message)

    def __enter__(self):
        self._server.start()
        return self

    def __exit__(self, *_):
        self._server.stop(None)
        self._channel.close()
