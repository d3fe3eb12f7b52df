"""The project's protos keep the style of style.py; and each of its rules finds what it is there to find.

    python3 style_test.py
"""

import pathlib
import tempfile
import unittest

import descriptors
import style

CLEAN = """\
// What there is of fruit.
syntax = "proto3";
package perceptron.fruit.v1;
import "google/protobuf/empty.proto";

service FruitService {
  // Eats it.
  rpc EatFruit(EatFruitRequest) returns (EatFruitResponse);
  // Eats them.
  rpc EatFruitStream(stream EatFruitRequest) returns (stream EatFruitResponse);
  // Returns it.
  rpc GetFruit(GetFruitRequest) returns (Fruit);
  // Throws it away.
  rpc DeleteFruit(DeleteFruitRequest) returns (google.protobuf.Empty);
}

message EatFruitRequest {
  // Which.
  string name = 1;
}

message EatFruitResponse {
  // What is left, in grams; before and after peeling.
  double grams_left = 1;
  double grams_peeled = 2;
}

message GetFruitRequest {
  // Which.
  string name = 1;
}

message DeleteFruitRequest {
  // Which.
  string name = 1;
}

// A seed.
message Seed {}

// A fruit.
message Fruit {
  // Sweet enough, or not known.
  optional bool sweet = 1;
  Seed seed = 2;
  // What it weighs.
  oneof weight {
    double grams = 3;
    double ounces = 4;
  }

  // What the sellers said of it.
  map<string, string> said = 5;
  FruitKind fruit_kind = 6;
}

// What kind.
enum FruitKind {
  FRUIT_KIND_UNSPECIFIED = 0;
  // Round.
  FRUIT_KIND_APPLE = 1;
}
"""

# What is planted in the clean file: the rule that must find it, what stands there, what stands there instead.
PLANTED = [
    ("files_lie_in_versioned_packages", "package perceptron.fruit.v1;", "package perceptron.fruit.v2;"),
    ("names_have_their_cases", "message EatFruitRequest {", "message seed {}\nmessage EatFruitRequest {"),
    ("names_have_their_cases", "double grams_left", "double gramsLeft"),
    ("names_have_their_cases", "oneof weight", "oneof Weight"),
    ("names_have_their_cases", "service FruitService", "service Fruits"),
    ("names_have_their_cases", "rpc EatFruit(EatFruitRequest)", "rpc eatFruit(EatFruitRequest)"),
    ("enum_values_are_prefixed", "FRUIT_KIND_APPLE", "APPLE"),
    ("enum_values_are_prefixed", "FRUIT_KIND_APPLE", "FRUIT_KIND_Apple"),
    ("enum_values_are_prefixed", "FRUIT_KIND_UNSPECIFIED", "FRUIT_KIND_PEAR"),
    ("enum_values_are_prefixed", "enum FruitKind {", "enum FruitKind {\n  option allow_alias = true; FRUIT_KIND_UNKNOWN = 0;"),
    ("methods_have_their_own_messages", "rpc GetFruit(GetFruitRequest)", "rpc GetFruit(EatFruitRequest)"),
    ("methods_have_their_own_messages", "returns (Fruit)", "returns (Seed)"),
    ("methods_have_their_own_messages", "rpc GetFruit(GetFruitRequest) returns (Fruit)", "rpc GetFruit(GetFruitRequest) returns (stream Fruit)"),
    ("methods_have_their_own_messages", "rpc DeleteFruit(DeleteFruitRequest)", "rpc DropFruit(DeleteFruitRequest)"),
    ("arrays_are_packed", "double grams_peeled = 2;", "repeated double grams_peeled = 2 [packed = false];"),
    ("everything_is_explained", "// What there is of fruit.\n", ""),
    ("everything_is_explained", "  // Eats it.\n", ""),
    ("everything_is_explained", "// A seed.\n", ""),
    ("everything_is_explained", "  double grams_peeled", "\n  double grams_peeled"),
    ("everything_is_explained", "  Seed seed = 2;", "\n  Seed stone = 2;"),
    ("everything_is_explained", "  // What it weighs.\n", ""),
    ("everything_is_explained", "  // Sweet enough, or not known.\n", ""),
    ("everything_is_explained", "// What kind.\n", ""),
    ("everything_is_explained", "  // Round.\n", ""),
]


def compiled(text):
    """The descriptors of one made-up file."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "perceptron/fruit/v1/fruit.proto"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return descriptors.compile_protos(directory)


class StyleTest(unittest.TestCase):
    maxDiff = None

    def test_the_projects_protos_keep_the_style(self):
        self.assertEqual(style.violations(descriptors.compile_protos()), [])

    def test_a_file_that_keeps_it_is_clean(self):
        self.assertEqual(style.violations(compiled(CLEAN)), [])

    def test_what_is_planted_is_found_by_its_rule(self):
        for rule, there, instead in PLANTED:
            with self.subTest(rule=rule, instead=instead):
                text = CLEAN.replace(there, instead, 1)
                self.assertNotEqual(text, CLEAN)
                (file,) = compiled(text).file
                found = {each.__name__ for each in style.RULES if list(each(file))}
                self.assertIn(rule, found)

    def test_every_rule_has_something_planted_for_it(self):
        self.assertEqual({rule for rule, _, _ in PLANTED}, {rule.__name__ for rule in style.RULES})

    def test_what_protoc_warns_of_is_not_passed_over(self):
        with self.assertRaisesRegex(descriptors.NotCompiled, "unused"):
            compiled(CLEAN.replace('"google/protobuf/empty.proto";', '"google/protobuf/empty.proto";\nimport "google/protobuf/any.proto";'))


if __name__ == "__main__":
    unittest.main()
