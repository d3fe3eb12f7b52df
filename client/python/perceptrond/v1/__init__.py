"""The API's messages and stubs, perceptron.v1, made from its protos when the package is built: model_pb2, report_pb2,
model_service_pb2_grpc, ... The protos' comments are their documentation."""
