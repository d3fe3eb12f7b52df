"""The model repository that docs/comparison.md makes for Triton declares what is in it, and the page's client asks for that.

    python3 model_repository_test.py PERCEPTROND PERCEPTRONCTL

Needs Debian's python3-onnx and python3-grpcio.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import onnx
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from onnx import TensorProto

from documents_test import ROOT, PagesTest

sys.path.insert(0, str(ROOT / "client/python/examples"))

import infer

PAGE = ROOT / "docs/comparison.md"
STRING, INT32, INT64, MESSAGE, ENUM = (descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{name}") for name in ("STRING", "INT32", "INT64", "MESSAGE", "ENUM"))
# Of Triton's inference.ModelConfig what the page may use; message: (field, number, type, name of the type, repeated).
MODEL_CONFIG = {
    "ModelInput": [("name", 1, STRING, None, False), ("data_type", 2, ENUM, "DataType", False), ("dims", 4, INT64, None, True)],
    "ModelOutput": [("name", 1, STRING, None, False), ("data_type", 2, ENUM, "DataType", False), ("dims", 3, INT64, None, True)],
    "ModelConfig": [("name", 1, STRING, None, False), ("max_batch_size", 4, INT32, None, False), ("input", 5, MESSAGE, "ModelInput", True),
                    ("output", 6, MESSAGE, "ModelOutput", True), ("backend", 17, STRING, None, False)],
}
DATA_TYPES = {"TYPE_INVALID": 0, "TYPE_INT64": 9, "TYPE_FP32": 11, "TYPE_STRING": 13}
# The same by the element type in ONNX, and their names in the protocol.
OF_ELEMENT = {TensorProto.INT64: 9, TensorProto.FLOAT: 11, TensorProto.STRING: 13}
DATATYPES = {9: "INT64", 11: "FP32", 13: "BYTES"}


def parse_config(text):
    file = descriptor_pb2.FileDescriptorProto(name="model_config.proto", package="inference", syntax="proto3")
    file.enum_type.add(name="DataType", value=[{"name": name, "number": number} for name, number in DATA_TYPES.items()])
    for name, fields in MODEL_CONFIG.items():
        message = file.message_type.add(name=name)
        for field, number, kind, of, repeated in fields:
            message.field.add(name=field, number=number, type=kind, type_name=of and f".inference.{of}", label=3 if repeated else 1)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return text_format.Parse(text, message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("inference.ModelConfig"))())


def declared(tensors):
    return {tensor.name: (tensor.data_type, list(tensor.dims)) for tensor in tensors}


def exported(tensors):
    """Of an ONNX graph; a dimension of any size is -1, as in Triton."""
    return {tensor.name: (OF_ELEMENT[tensor.type.tensor_type.elem_type], [one.dim_value or -1 for one in tensor.type.tensor_type.shape.dim])
            for tensor in tensors}


class ModelRepositoryTest(PagesTest):
    @classmethod
    def setUpClass(cls):
        directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls().follow_in(directory, PAGE)
        (model,) = (directory / "models").iterdir()
        cls.name = model.name
        cls.config = parse_config((model / "config.pbtxt").read_text())
        # Version 1.
        cls.graph = onnx.load(str(model / "1/model.onnx")).graph

    def test_its_configuration_declares_the_tensors_of_the_exported_model(self):
        self.assertIn(self.config.name, ("", self.name))
        # The rows are a dimension of every tensor: Triton adds one only to models with batches.
        self.assertEqual(self.config.max_batch_size, 0)
        self.assertEqual(declared(self.config.input), exported(self.graph.input))
        self.assertEqual(declared(self.config.output), exported(self.graph.output))

    def test_the_client_says_which_kind_of_model_it_needs(self):
        messages = infer.make_messages()
        metadata = messages.ModelMetadataResponse(name="plane", inputs=[{"name": "features", "datatype": "FP32", "shape": [-1, 2]}])
        with self.assertRaisesRegex(SystemExit, "model plane has no input of type BYTES; expected a model of named features"):
            infer.request_of(messages, metadata, b"Free prize")

    def test_the_client_names_the_server_that_it_waited_for(self):
        with tempfile.TemporaryDirectory() as directory:
            server = f"unix:{directory}/socket"
            client = subprocess.run([sys.executable, infer.__file__, self.name, "/dev/null", "--server", server, "--wait", "0.1"],
                                    stderr=subprocess.PIPE, text=True)
        self.assertEqual((client.returncode, client.stderr), (1, f"infer.py: no server at {server} within 0.1 seconds\n"))

    def test_the_client_of_the_page_asks_for_these_tensors(self):
        messages = infer.make_messages()
        declarations = [{"name": tensor.name, "datatype": DATATYPES[tensor.data_type], "shape": tensor.dims} for tensor in self.config.input]
        metadata = messages.ModelMetadataResponse(name=self.name, inputs=declarations)
        request = infer.request_of(messages, metadata, b"Free entry, free prize")
        self.assertEqual(request.model_name, self.name)
        self.assertEqual([(tensor.name, tensor.datatype, len(tensor.shape)) for tensor in request.inputs],
                         [(tensor.name, DATATYPES[tensor.data_type], len(tensor.dims)) for tensor in self.config.input])
        self.assertLessEqual({tensor.name for tensor in request.outputs}, {tensor.name for tensor in self.config.output})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
