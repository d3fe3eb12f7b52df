"""Pictures of models: lines, regions and texts of the Axes, beside what theory says of the lecture notes' examples.

    PYTHONPATH=tests/deploy:BUILT python3 python_plot_test.py PERCEPTROND
"""

import contextlib
import io
import subprocess
import sys
import unittest
import xml.dom.minidom

import matplotlib
import numpy
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from perceptrond import plot
from perceptrond.v1 import feature_space_pb2
from python_fixture import ServedTest

Space = feature_space_pb2.FeatureSpace
CORNERS = [[0, 0], [0, 1], [1, 0], [1, 1]]
AND, NAND = (CORNERS, [-1, -1, -1, 1]), (CORNERS, [1, 1, 1, -1])
ONE = ([[1], [2], [3], [4]], [1, 1, -1, -1])


def texts(ax):
    """Of the legend, in one line each."""
    return [text.get_text().replace("\n", " ") for text in ax.get_legend().get_texts()]


def marks(ax, label):
    """The points that are drawn with this label."""
    return sorted(tuple(point) for line in ax.lines if line.get_label() == label for point in line.get_xydata().tolist())


def contour(ax, width):
    """The points of the contours of this width."""
    return numpy.concatenate([path.vertices for lines in ax.collections if lines.get_linewidth()[0] == width for path in lines.get_paths()])


def verticals(ax, style):
    return sorted(round(line.get_xdata()[0], 4) for line in ax.lines if line.get_linestyle() == style and [*line.get_ydata()] == [0, 1])


class PlotTest(ServedTest):
    def learned(self, name, data, **settings):
        self.create(name, **{"features": len(data[0][0]), "stored_examples": {"max_sample": 100}, **settings})
        self.client.learn(name, *data, until_converged=True)
        return name

    def draw(self, picture, *given, **settings):
        return picture(self.client, *given, ax=Figure().subplots(), **settings)

    def test_the_boundary_is_where_the_score_is_0_and_the_margin_is_the_distance_of_the_closest_example(self):
        ax = self.draw(plot.boundary, self.learned("and", AND), separator=self.client.analyze("and"))
        # theta = (3, 2), theta_0 = -4.
        numpy.testing.assert_allclose(contour(ax, 2)[:2] @ (3, 2), 4, atol=1e-5)
        numpy.testing.assert_allclose(abs(contour(ax, 1.2)[:2] @ (3, 2) - 4), 1, atol=1e-5)
        self.assertEqual(marks(ax, "+1"), [(1, 1)])
        self.assertEqual(marks(ax, "-1"), [(0, 0), (0, 1), (1, 0)])
        # The best separator is x + y = 3/2, at a distance of 1 / sqrt(8).
        self.assertEqual(marks(ax, "3 support vectors of it"), [(0, 1), (1, 0), (1, 1)])
        self.assertIn("margin 0.2774", texts(ax))
        self.assertIn("its margin 0.3536", texts(ax))
        self.assertIn("perceptron at revision 18, 4 examples, all that were seen, none misclassified", [text.get_text() for text in ax.texts])

    def test_with_a_misclassified_example_there_is_a_ring_and_no_margin(self):
        ax = self.draw(plot.boundary, self.learned("and", AND), [*CORNERS, [2, 2]], [-1, -1, -1, 1, -1])
        self.assertEqual(marks(ax, "misclassified: 1"), [(2, 2)])
        self.assertFalse([text for text in texts(ax) if "margin" in text])

    def test_along_one_feature_the_score_crosses_0_at_the_boundary(self):
        # theta = -3, theta_0 = 7.
        ax = self.draw(plot.boundary, self.learned("one", ONE), separator=self.client.analyze("one"))
        self.assertEqual(verticals(ax, "-"), [2.3333, 2.5])
        self.assertEqual(verticals(ax, "--"), [2, 2, 2.6667, 3])
        self.assertEqual(marks(ax, "+1") + marks(ax, "-1"), [(1, 4), (2, 1), (3, -2), (4, -5)])
        self.assertTrue({"boundary at 2.333", "margin 0.3333", "its margin 0.5"} <= {*texts(ax)})

    def test_in_weight_space_an_example_is_a_line_and_what_is_right_for_all_a_polygon(self):
        ax = self.draw(plot.weight_space, self.learned("and", AND))
        self.assertEqual(marks(ax, "the model"), [(3, 2)])
        corners = {tuple(numpy.round(corner, 4) + 0.0) for corner in ax.patches[0].get_xy()}
        self.assertEqual(corners, {(0, 4), (4, 0), (4, 4)})
        numpy.testing.assert_allclose(numpy.sum(marks(ax, "an example of +1"), axis=1), 4)
        # The other examples are w = 4 and v = 4; (0, 0) is no line.
        self.assertEqual({round(4 - min(abs(x - 4), abs(y - 4)), 4) for x, y in marks(ax, "an example of -1")}, {4})
        ax = self.draw(plot.weight_space, self.learned("one", ONE))
        self.assertEqual(marks(ax, "the model"), [(-3, 7)])
        for x, label in zip(range(1, 5), [1, 1, -1, -1]):
            self.assertTrue(all(label * (x * theta + theta_0) >= -1e-9 for theta, theta_0 in ax.patches[0].get_xy()))

    def test_xor_with_the_product_of_its_inputs_is_bounded_by_both_axes(self):
        space = Space(dense=Space.Dense(dimension=2))
        space.map.polynomial.degree, space.map.polynomial.interactions_only = 2, True
        ax = self.draw(plot.boundary, self.learned("xor", ([[-1, -1], [1, 1], [-1, 1], [1, -1]], [1, 1, -1, -1]), features=space))
        numpy.testing.assert_allclose(abs(contour(ax, 2)).min(axis=1), 0, atol=0.01)
        self.assertEqual(marks(ax, "+1"), [(-1, -1), (1, 1)])
        self.assertFalse([text for text in texts(ax) if "margin" in text])

    def test_stored_examples_are_the_sample_without_the_products_of_a_feature_map(self):
        space = Space(named=Space.Named())
        space.map.polynomial.degree = 2
        self.learned("product", ([{"a*b": x, "c": y} for x, y in CORNERS], AND[1]), features=space, stored_examples={"max_sample": 1})
        ax = self.draw(plot.boundary, "product", x="c", y="a*b")
        self.assertEqual(len(marks(ax, "+1") + marks(ax, "-1")), 1)
        self.assertIn(" 1 example of the sample,", ax.texts[0].get_text())
        self.learned("updates", ([{"a*b": 2, "c": 3}], [1]), features=space, stored_examples={})
        ax = self.draw(plot.boundary, "updates")
        self.assertEqual((ax.get_xlabel(), ax.get_ylabel(), marks(ax, "+1")), ("a*b", "c", [(2, 3)]))

    def test_other_features_are_at_their_means_or_as_told_and_the_picture_says_so(self):
        rows = [{"age": 1, "size": 2, "$mass$": 2}, {"age": 3, "size": 1, "$mass$": 4}]
        self.learned("mass", (rows, [1, -1]), features="named")
        weights = dict(zip(*(getattr(self.client.weights("mass").vectors[0], field) for field in ("names", "values"))))
        bias = self.client.weights("mass").vectors[0].bias
        for at, mass, said in ((None, 3, r"\$mass\$ = 3 (mean)"), ({"$mass$": 2.5}, 2.5, r"\$mass\$ = 2.5")):
            ax = self.draw(plot.boundary, "mass", rows, [1, -1], x="age", y="size", at=at)
            self.assertIn(said, texts(ax))
            on_it = contour(ax, 2)[:2] @ (weights["age"], weights["size"]) + bias + mass * weights["$mass$"]
            numpy.testing.assert_allclose(on_it, 0, atol=1e-5)
            self.assertFalse([text for text in texts(ax) if "margin" in text])

    def test_a_class_has_the_area_where_it_is_predicted(self):
        self.learned("three", ([[2, 0], [-1, 2], [-1, -2]], [0, 1, 2]), classes=3, labels=["tea", "rum", "a name of many words that goes beyond a line of the legend"])
        ax = self.draw(plot.boundary, "three")
        for (area, *point) in ((0, 2, 0), (1, -1, 1.9), (2, -1, -1.9)):
            inside = [any(path.contains_point(point) for path in filled.get_paths()) for filled in ax.collections[:3]]
            self.assertEqual(inside, [area == number for number in range(3)])
        self.assertIn("a name of many words that goes beyond a line of the legend", texts(ax))
        self.assertEqual(self.client.weights("three").vectors[0].values, [2])
        self.assertEqual(marks(self.draw(plot.weight_space, "three", label="tea"), "the model"), [(2, 0)])

    def test_a_learning_curve_is_by_examples_or_by_updates(self):
        self.learned("one", ONE)
        panels = {ax.get_ylabel(): ax for ax in plot.learning_curve(self.client, "one", by="examples", figure=Figure())}
        self.assertEqual(marks(panels["mistakes"], "mistakes")[-1], (44, 25))
        self.assertAlmostEqual(marks(panels["norm"], "norm of the weights")[-1][1], 58 ** 0.5)
        self.assertAlmostEqual(marks(panels["margin"], "at least (floor), of the last clean\npass")[-1][1], 58 ** -0.5)
        by_updates = {ax.get_ylabel(): ax for ax in plot.learning_curve(self.client, "one", log=True, figure=Figure())}
        self.assertEqual(list(by_updates), ["norm", "margin", "error, %"])
        self.assertEqual(by_updates["norm"].get_xscale(), "log")
        self.assertEqual(marks(by_updates["norm"], "norm of the weights")[0], (1, 2 ** 0.5))

    def test_weights_are_bars_by_size_on_the_background_asked_for(self):
        ax = self.draw(plot.weights, self.learned("nand", NAND), dark=True)
        self.assertEqual([bar.get_width() for bar in ax.patches], [-3, -2, 4])
        self.assertEqual([text.get_text() for text in ax.get_yticklabels()], ["feature 0", "feature 1", "bias θ₀"])
        self.assertEqual(to_hex(ax.get_legend().get_texts()[0].get_color()), "#e6edf3")

    def test_what_cannot_be_drawn_is_a_value_error_that_says_what_to_do(self):
        self.learned("and", AND)
        self.learned("wide", ([[0, 0, 1], [1, 1, 0]], [1, -1]))
        self.learned("kernel", AND, learner="kernel_perceptron")
        self.learned("xor", (CORNERS[1:], [1, 1, -1]), prediction="averaged")
        self.create("mail", features="text")
        self.create("fresh", features=2)
        for words, draw in (("3 features: choose two", lambda: plot.boundary(self.client, "wide")), ("0 to 1", lambda: plot.boundary(self.client, "and", x=0, y=2)),
                            ("not an index", lambda: plot.boundary(self.client, "and", x="age")), ("the same feature", lambda: plot.boundary(self.client, "and", x=0, y="0")),
                            ("give both", lambda: plot.boundary(self.client, "and", y=0)), ("is an axis", lambda: plot.boundary(self.client, "and", at={0: 1})),
                            ("the minimum first", lambda: plot.boundary(self.client, "and", x_range=(2, 1))), ("leave it out", lambda: plot.weights(self.client, "and", label=1)),
                            ("draw the boundary", lambda: plot.weight_space(self.client, "kernel")), ("texts", lambda: plot.boundary(self.client, "mail")),
                            ("5 examples and 4 labels", lambda: plot.boundary(self.client, "and", [*CORNERS, [2, 2]], AND[1])),
                            ("let the model learn", lambda: plot.learning_curve(self.client, "fresh"))):
            self.assertRaisesRegex(ValueError, words, draw)


class CommandTest(ServedTest):
    def run_main(self, *arguments):
        """Its exit code and what it prints: output, errors."""
        with contextlib.chdir(self.directory), contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
            try:
                code = plot.main([*map(str, arguments)])
            except SystemExit as exited:
                code = exited.code
        return code, out.getvalue(), errors.getvalue()

    def test_a_picture_has_the_format_that_its_name_says(self):
        self.create("m", features="named", labels=["ham", "spam"])
        (self.directory / "m.csv").write_text("kind,digits,words\nham,1,4\nspam,5,\n")
        self.client.learn("m", [{"digits": 1, "words": 4}, {"digits": 5}], ["ham", "spam"])
        told = self.run_main("m", "m.csv", "--label-column", "kind", "--x", "digits", "--y", "words", "-o", "m.svg", "--title", "<A & B>")
        self.assertEqual(told, (0, "wrote m.svg\n", ""))
        svg = (self.directory / "m.svg").read_text()
        self.assertIn("prefers-color-scheme:dark", svg)
        self.assertEqual([node.firstChild.data for node in xml.dom.minidom.parseString(svg).getElementsByTagName("title")], ["<A & B>"])
        self.assertLessEqual({"ham", "spam", "digits", "words"}, {node.firstChild.data for node in xml.dom.minidom.parseString(svg).getElementsByTagName("text")})
        for more in (["--what", "learning-curve", "--by", "examples"], ["--what", "weights"], ["--what", "weight-space", "--x", "digits"], ["--separator", "--x", "words"]):
            self.assertEqual(self.run_main("m", "-o", "m.png", *more), (0, "wrote m.png\n", ""))
            self.assertTrue((self.directory / "m.png").read_bytes().startswith(b"\x89PNG"))

    def test_errors_name_what_is_wrong_and_have_a_code(self):
        self.create("m", features=2)
        (self.directory / "m.csv").write_text("a,b\n1,2\n")
        for code, words, *arguments in ((1, "MODEL_NOT_FOUND", "none"), (1, "No such file", "m", "-o", "none/m.svg"), (1, "NOTHING_STORED", "m", "--separator"),
                                        (2, ".svg, .png, .pdf", "m", "-o", "json"), (2, "no meaning for --what boundary", "m", "--log"), (2, "invalid choice", "m", "--what", "art"),
                                        (2, "age=30", "m", "--at", "age"), (2, "none.csv", "m", "none.csv"), (2, "not an index", "m", "--x", "a"),
                                        (2, "there are a, b", "m", "m.csv", "--label-column", "c"), (2, "give FILE", "m", "--label-column", "c")):
            with self.subTest(words):
                found, out, errors = self.run_main(*arguments, *([] if "-o" in arguments else ["-o", "no.svg"]))
                self.assertEqual((found, out), (code, ""), errors)
                self.assertIn(words, errors)
        self.assertFalse((self.directory / "no.svg").exists())

    def test_without_matplotlib_the_package_to_install_is_named(self):
        program = "import runpy, sys; sys.modules['matplotlib'] = None; runpy.run_module('perceptrond.plot', run_name='__main__')"
        done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Aperceptrond.plot needs matplotlib: install Debian's python3-matplotlib.*\n\Z")


if __name__ == "__main__":
    matplotlib.use("agg")
    unittest.main()
