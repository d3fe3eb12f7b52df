"""The current protos are compatible with programs compiled from the released ones; the check finds each incompatible change.

    python3 compatibility_test.py
"""

import pathlib
import tempfile
import unittest

import compatibility
import descriptors
import release

# Files that came after the last release, which nobody depends on yet; release.py takes them in, and they leave this list.
NOT_YET_RELEASED = {"perceptron/storage/v1/verification.proto", "perceptron/v1/backup_service.proto",
                    "perceptron/access/v1/access.proto", "perceptron/storage/v1/fleet.proto",
                    "perceptron/fleet/v1/heartbeat.proto", "perceptron/fleet/v1/segment.proto",
                    "perceptron/fleet/v1/prediction.proto", "perceptron/v1/alias_service.proto", "perceptron/v1/history_service.proto",
                    "perceptron/storage/v1/model_file.proto"}

OLD = """\
syntax = "proto3";
package fruit.v1;

service FruitService {
  rpc Eat(EatRequest) returns (stream EatResponse);
  rpc Grow(EatRequest) returns (EatResponse);
}

message EatRequest {
  reserved 9, 11 to 13;
  reserved "stone";
  string name = 1;
  int32 grams = 2;
  optional bool peeled = 3;
  oneof place {
    string table = 4;
    string tree = 5;
  }
  repeated string guests = 6;
  map<string, int32> shares = 7;
  Kind kind = 8;
  message Bite {
    float depth = 1;
  }
  Bite bite = 10;
}

message EatResponse {}
message Spare {}

enum Kind {
  reserved 7;
  reserved "KIND_STONE";
  KIND_UNSPECIFIED = 0;
  KIND_APPLE = 1;
  KIND_PEAR = 2;
}
"""

# What a change breaks: what stood there, what stands there now, what is to be said of it (a part of each finding, in order).
BREAKING = [
    ("package fruit.v1;", "package fruit.v2;", ["package fruit.v1 became fruit.v2", "EatRequest: the message is gone"]),
    ("  string name = 1;", "", ["EatRequest.name: removed", "number 1 is not reserved", "its name is not reserved"]),
    ("  string name = 1;", '  reserved 1; reserved "name";', ["EatRequest.name: removed"]),
    ("  string name = 1;", "  reserved 1;", ["EatRequest.name: removed", "its name is not reserved"]),
    ("  string name = 1;", "  string title = 1;", ["number 1 is called title now"]),
    ("  string name = 1;", "  string name = 21;", ["EatRequest.name: removed", "number 1 is not", "its name is not"]),
    ("  string name = 1;", "  bytes name = 1;", ["string became bytes"]),
    ("  string name = 1;", "  repeated string name = 1;", ["optional became repeated"]),
    ("  string name = 1;", '  string name = 1 [json_name = "title"];', ["in JSON name became title"]),
    ("  int32 grams = 2;", "  int64 grams = 2;", ["int32 became int64"]),
    ("  int32 grams = 2;", "  sint32 grams = 2;", ["int32 became sint32"]),
    ("  int32 grams = 2;", "  optional int32 grams = 2;", ["gained field presence"]),
    ("  optional bool peeled = 3;", "  bool peeled = 3;", ["lost field presence"]),
    ("    string tree = 5;\n  }", "  }\n  string tree = 5;", ["moved from place to no oneof"]),
    ("  repeated string guests = 6;", "  string guests = 6;", ["repeated became optional"]),
    ("map<string, int32> shares", "map<string, int64> shares", ["SharesEntry.value: int32 became int64"]),
    ("map<string, int32> shares", "repeated string shares", ["shares: fruit.v1.EatRequest.SharesEntry became string", "SharesEntry: the message is gone"]),
    ("  Bite bite = 10;", "  Spare bite = 10;", ["fruit.v1.EatRequest.Bite became fruit.v1.Spare"]),
    ("    float depth = 1;", "    double depth = 1;", ["Bite.depth: float became double"]),
    ("  Kind kind = 8;", "  int32 kind = 8;", ["fruit.v1.Kind became int32"]),
    ("reserved 9, 11 to 13;", "reserved 11 to 13;", ["field numbers from 9 are no longer reserved"]),
    ("reserved 9, 11 to 13;", "reserved 9, 11 to 12;", ["field numbers from 11 are no longer reserved"]),
    ('  reserved "stone";\n', "", ["field name stone is no longer reserved"]),
    ("message Spare {}", "", ["Spare: the message is gone"]),
    ("  KIND_PEAR = 2;", "", ["KIND_PEAR: removed", "number 2 is not reserved", "its name is not reserved"]),
    ("  KIND_PEAR = 2;", '  reserved 2; reserved "KIND_PEAR";', ["KIND_PEAR: removed"]),
    ("  KIND_PEAR = 2;", "  KIND_PLUM = 2;", ["number 2 is called KIND_PLUM now"]),
    ("  KIND_PEAR = 2;", "  KIND_PEAR = 3;", ["KIND_PEAR: removed", "number 2 is not", "its name is not"]),
    ("  reserved 7;\n", "", ["value numbers from 7 are no longer reserved"]),
    ('  reserved "KIND_STONE";\n', "", ["value name KIND_STONE is no longer reserved"]),
    ("service FruitService", "service VegetableService", ["FruitService: the service is gone"]),
    ("  rpc Grow(EatRequest) returns (EatResponse);\n", "", ["Grow: the method is gone"]),
    ("rpc Grow(EatRequest)", "rpc Grow(Spare)", ["(fruit.v1.EatRequest) returns (fruit.v1.EatResponse) became (fruit.v1.Spare)"]),
    ("rpc Grow(EatRequest) returns (EatResponse)", "rpc Grow(EatRequest) returns (Spare)", ["became (fruit.v1.EatRequest) returns (fruit.v1.Spare)"]),
    ("rpc Grow(EatRequest)", "rpc Grow(stream EatRequest)", ["became (stream fruit.v1.EatRequest)"]),
    ("returns (stream EatResponse)", "returns (EatResponse)", ["(fruit.v1.EatRequest) returns (stream fruit.v1.EatResponse) became"]),
]

# What breaks nobody.
HARMLESS = [
    ("message Spare {}", "message Spare { string name = 1; }"),
    ("message Spare {}", "message Spare {}\nmessage Other {}"),
    ("  KIND_PEAR = 2;", "  KIND_PEAR = 2;\n  KIND_PLUM = 3;"),
    ("  string name = 1;", "  string name = 1 [deprecated = true];"),
    ("  string name = 1;", "  // Which.\n  string name = 1;"),
    ("    string tree = 5;", "    string tree = 5;\n    string plate = 20;"),
    ("  int32 grams = 2;\n  optional bool peeled = 3;", "  optional bool peeled = 3;\n  int32 grams = 2;"),
    ("  rpc Grow(", "  rpc Cut(EatRequest) returns (EatResponse);\n  rpc Grow("),
]


def compiled(text, name="fruit.proto"):
    with tempfile.TemporaryDirectory() as directory:
        (pathlib.Path(directory) / name).write_text(text)
        return descriptors.compile_protos(directory)


def changed(there, now):
    assert OLD.count(there) == 1, there
    return OLD.replace(there, now)


class CompatibilityTest(unittest.TestCase):
    maxDiff = None

    def test_the_present_protos_break_nobody_who_was_compiled_from_the_released_ones(self):
        self.assertEqual(compatibility.breaking_changes(release.released(), descriptors.compile_protos()), [])

    def test_the_released_descriptor_is_of_all_of_the_projects_services(self):
        names = {service.name for file in release.released().file for service in file.service}
        self.assertLessEqual({"ModelService", "LearningService", "AnalysisService", "GRPCInferenceService"}, names)

    def test_every_proto_file_is_in_the_release_or_known_to_be_new(self):
        held = {file.name for file in release.released().file}
        self.assertEqual({file.name for file in descriptors.compile_protos().file} - held, NOT_YET_RELEASED,
                         "what is in no release may break unseen: run release.py, or list it as new in NOT_YET_RELEASED")

    def test_nothing_changed_breaks_nothing(self):
        self.assertEqual(compatibility.breaking_changes(compiled(OLD), compiled(OLD)), [])

    def test_each_breaking_change_is_found_and_nothing_else_with_it(self):
        for there, now, expected in BREAKING:
            with self.subTest(there=there, now=now):
                found = compatibility.breaking_changes(compiled(OLD), compiled(changed(there, now)))
                if there.startswith("package"):
                    found = found[:2]
                self.assertEqual(len(found), len(expected), found)
                for part, said in zip(expected, found):
                    self.assertIn(part, said)

    def test_a_removed_file_is_found(self):
        found = compatibility.breaking_changes(compiled(OLD), compiled(OLD, "moved.proto"))
        self.assertEqual(len(found), 1)
        self.assertIn("fruit.proto: the file is gone", found[0])

    def test_what_is_added_or_explained_breaks_nothing(self):
        for there, now in HARMLESS:
            with self.subTest(there=there, now=now):
                self.assertEqual(compatibility.breaking_changes(compiled(OLD), compiled(changed(there, now))), [])

    def test_a_release_is_refused_as_long_as_it_breaks_something_and_then_written(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "released.binpb"
            self.assertEqual(release.write(compiled(OLD), path), [])
            before = path.read_bytes()
            broken = compiled(changed("  int32 grams = 2;", "  int64 grams = 2;"))
            self.assertEqual(len(release.write(broken, path)), 1)
            self.assertEqual(path.read_bytes(), before)
            more = compiled(changed("message Spare {}", "message Spare { string name = 1; }"))
            self.assertEqual(release.write(more, path), [])
            self.assertEqual(release.released(path), descriptors.without_source_info(more))


if __name__ == "__main__":
    unittest.main()
