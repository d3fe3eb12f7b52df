"""Labels of models that went to Vowpal Wabbit's form and back, against a real server.

    ENVIRONMENT/bin/python python_weights_labels_test.py PERCEPTROND
"""

import contextlib
import io
import unittest

from perceptrond import weights
from python_fixture import ServedTest

NAMES = ["free", "lunch", "late"]
ROWS = [{name: 1.0} for name in NAMES]


class WeightsLabelsTest(ServedTest):
    def run_main(self, *arguments, expect=0):
        """What it says on standard error."""
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as error:
            code = weights.main([*map(str, arguments)])
        self.assertEqual(code, expect, error.getvalue())
        return error.getvalue()

    def test_vowpal_wabbits_labels_are_replaced_by_those_that_the_export_names(self):
        for model, labels, shown, settings in (("digits", [0, 1, 2], "0,1,2", {"classes": 3}),
                                               ("mail", ["spam", "ham", "ham"], "ham,spam", {"labels": ["ham", "spam"]}),
                                               ("topics", ["c", "a", "b"], "a,b,c", {"classes": 3, "labels": ["a", "b", "c"]})):
            self.create(model, features="named", **settings)
            self.client.learn(model, ROWS, labels, until_converged=True)
            file = self.directory / f"{model}.vw"
            self.assertIn(f"give --labels {shown}\n", self.run_main("export", "--format", "vw", model, file))
            self.addCleanup(self.client.delete, f"{model}-vw", missing_ok=True)
            self.run_main("import", "--format", "vw", f"{model}-vw", file, "--labels", shown)
            self.assertEqual(self.client.predict(f"{model}-vw", ROWS).labels, labels)

    def test_nothing_is_said_where_the_labels_are_the_same(self):
        self.create("plain", features="named")
        self.client.learn("plain", ROWS, [1, -1, -1], until_converged=True)
        self.assertEqual(self.run_main("export", "--format", "vw", "plain", self.directory / "plain.vw"), "")

    def test_as_many_names_are_asked_for_as_the_model_has_labels(self):
        self.create("two", features="named")
        self.client.learn("two", ROWS, [1, -1, -1])
        file = self.directory / "two.onnx"
        self.run_main("export", "--format", "vw", "two", file)
        self.assertIn("--labels has 3 names, and the model 2 labels", self.run_main("import", "--format", "vw", "three", file, "--labels", "a,b,c", expect=1))


if __name__ == "__main__":
    unittest.main()
