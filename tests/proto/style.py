"""The style that the project's protos keep: one function a rule, each yielding (location, what is wrong).

What the public style guide and the API improvement proposals ask for, and the house's own way with comments.
"""

import re

PASCAL = re.compile(r"[A-Z][a-zA-Z0-9]*")
LOWER_SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
UPPER_SNAKE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
VERSION = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
EMPTY = ".google.protobuf.Empty"

# Field numbers of the messages that describe protos, of which paths into a file are made (descriptor.proto).
MESSAGE, ENUM, SERVICE, SYNTAX = 4, 5, 6, 12
FIELD, NESTED, NESTED_ENUM, ONEOF = 2, 3, 4, 8
VALUE = METHOD = 2


def upper_snake(name):
    """ResultDetail -> RESULT_DETAIL."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()


class Locations:
    """Where the definitions of one file are, and which of them have comments."""

    def __init__(self, file):
        self._file = file
        self._at = {tuple(location.path): location for location in file.source_code_info.location}

    def line(self, path):
        return self._at[path].span[0] + 1

    def last_line(self, path):
        span = self._at[path].span
        return (span[2] if len(span) == 4 else span[0]) + 1

    def name(self, path):
        return f"{self._file.name}:{self.line(path)}"

    def has_comment(self, path):
        location = self._at.get(path)
        return location is not None and bool(location.leading_comments.strip() or location.trailing_comments.strip())

    def file_has_comment(self):
        syntax = self._at.get((SYNTAX,))
        return syntax is not None and bool(syntax.leading_comments.strip() or syntax.leading_detached_comments)


def messages(file):
    """(path, name from its package on, message) of all messages but those that are maps' entries."""
    def below(path, prefix, message):
        yield path, prefix + message.name, message
        for i, nested in enumerate(message.nested_type):
            if not nested.options.map_entry:
                yield from below(path + (NESTED, i), f"{prefix}{message.name}.", nested)

    for i, message in enumerate(file.message_type):
        yield from below((MESSAGE, i), "", message)


def enums(file):
    """(path, enum) of all enums."""
    for i, enum in enumerate(file.enum_type):
        yield (ENUM, i), enum
    for path, _, message in messages(file):
        for i, enum in enumerate(message.enum_type):
            yield path + (NESTED_ENUM, i), enum


def methods(file):
    """(path, method) of all services' methods."""
    for i, service in enumerate(file.service):
        for j, method in enumerate(service.method):
            yield (SERVICE, i, METHOD, j), method


# ---- The rules ----


def files_lie_in_versioned_packages(file):
    """The package is the directory and ends with a version, so that another version can stand beside it."""
    directory, _, name = file.name.rpartition("/")
    if file.package != directory.replace("/", "."):
        yield file.name, f"package {file.package} is not its directory, {directory}"
    if not VERSION.fullmatch(file.package.rpartition(".")[2]):
        yield file.name, f"package {file.package} does not end with a version, such as v1"
    if not LOWER_SNAKE.fullmatch(name.removesuffix(".proto")):
        yield file.name, "a file's name is lower_snake_case.proto"
    if file.syntax != "proto3":
        yield file.name, "the syntax is not proto3"


def names_have_their_cases(file):
    locations = Locations(file)
    for path, _, message in messages(file):
        if not PASCAL.fullmatch(message.name):
            yield locations.name(path), f"message {message.name} is not PascalCase"
        for kind, number, things in (("field", FIELD, message.field), ("oneof", ONEOF, message.oneof_decl)):
            for i, thing in enumerate(things):
                # An optional field is a oneof of its own, which protoc calls _field.
                if not LOWER_SNAKE.fullmatch(thing.name) and not thing.name.startswith("_"):
                    yield locations.name(path + (number, i)), f"{kind} {thing.name} is not lower_snake_case"
    for i, service in enumerate(file.service):
        if not PASCAL.fullmatch(service.name) or not service.name.endswith("Service"):
            yield locations.name((SERVICE, i)), f"service {service.name} is not PascalCase that ends with Service"
    for path, method in methods(file):
        if not PASCAL.fullmatch(method.name):
            yield locations.name(path), f"method {method.name} is not PascalCase"


def enum_values_are_prefixed(file):
    """The names of an enum's values share a scope with those of others; and 0 is what an absent field reads as."""
    locations = Locations(file)
    for path, enum in enums(file):
        if not PASCAL.fullmatch(enum.name):
            yield locations.name(path), f"enum {enum.name} is not PascalCase"
        if enum.options.allow_alias:
            yield locations.name(path), f"enum {enum.name} has two names for one number"
        prefix = upper_snake(enum.name) + "_"
        for i, value in enumerate(enum.value):
            location = locations.name(path + (VALUE, i))
            # People write the values of the access file, which has each enum in one place.
            written = file.name.startswith("perceptron/access/")
            if not UPPER_SNAKE.fullmatch(value.name) or not (value.name.startswith(prefix) or written):
                yield location, f"enum value {value.name} is not UPPER_SNAKE_CASE that begins with {prefix}"
            if (value.number == 0) != (value.name == prefix + "UNSPECIFIED"):
                yield location, f"0 and nothing else is {prefix}UNSPECIFIED, but {value.name} is {value.number}"


def methods_have_their_own_messages(file):
    """So that either can get a field without the other. A standard method answers with its resource, or nothing.

    XStream may share the messages of X: the same call, once and as often as you like.
    """
    locations = Locations(file)
    all_names = {method.name for _, method in methods(file)}
    for path, method in methods(file):
        name = method.name
        once = name.removesuffix("Stream")
        if once in all_names and method.input_type == f".{file.package}.{once}Request":
            name = once
        if method.input_type != f".{file.package}.{name}Request":
            yield locations.name(path), f"method {method.name} takes {method.input_type}, not {method.name}Request"
        own = method.output_type == f".{file.package}.{name}Response"
        package, _, resource = method.output_type.rpartition(".")
        is_resource = package == f".{file.package}" and method.name.endswith(resource) and not method.server_streaming
        is_empty = method.output_type == EMPTY and method.name.startswith("Delete")
        if not (own or is_resource or is_empty):
            yield locations.name(path), f"method {method.name} answers {method.output_type}, not {method.name}Response or its resource"


def arrays_are_packed(file):
    locations = Locations(file)
    for path, _, message in messages(file):
        for i, field in enumerate(message.field):
            if field.options.HasField("packed") and not field.options.packed:
                yield locations.name(path + (FIELD, i)), f"field {field.name} is not packed"


def everything_is_explained(file):
    """A comment stands over each thing, or over the first of a group: the lines below it up to the next blank one.

    A request or response is explained by its method, a service by its file, a oneof's fields by the oneof, a message's
    only field by the message, a field that is called as the message it holds by that message, and a value that only says
    that nothing was said by its name.
    """
    locations = Locations(file)
    if not locations.file_has_comment():
        yield file.name, "no comment over the file's syntax says what it is about"
    for path, method in methods(file):
        if not locations.has_comment(path):
            yield locations.name(path), f"method {method.name} has no comment"
    by_method = {name.rpartition(".")[2] for _, method in methods(file) for name in (method.input_type, method.output_type)}
    for path, name, message in messages(file):
        if not locations.has_comment(path) and name not in by_method:
            yield locations.name(path), f"message {name} has no comment"
        yield from _fields_unexplained(locations, path, name, message)
    for path, enum in enums(file):
        if not locations.has_comment(path):
            yield locations.name(path), f"enum {enum.name} has no comment"
        said = [value.name.endswith("_UNSPECIFIED") for value in enum.value]
        for i in _unexplained(locations, path, VALUE, said):
            yield locations.name(path + (VALUE, i)), f"enum value {enum.value[i].name} has no comment"


def _fields_unexplained(locations, path, name, message):
    def explained_otherwise(field):
        called_as_type = field.name == upper_snake(field.type_name.rpartition(".")[2]).lower()
        by_oneof = field.HasField("oneof_index") and locations.has_comment(path + (ONEOF, field.oneof_index))
        return called_as_type or by_oneof or (len(message.field) == 1 and locations.has_comment(path))

    for i in _unexplained(locations, path, FIELD, [explained_otherwise(field) for field in message.field]):
        yield locations.name(path + (FIELD, i)), f"field {name}.{message.field[i].name} has no comment"


def _unexplained(locations, parent, number, explained_otherwise):
    """Which of a message's fields, or an enum's values, have no comment and follow none of theirs without a blank line."""
    group_reaches = None
    for i in sorted(range(len(explained_otherwise)), key=lambda i: locations.line(parent + (number, i))):
        path = parent + (number, i)
        if locations.has_comment(path) or group_reaches == locations.line(path):
            group_reaches = locations.last_line(path) + 1
        elif not explained_otherwise[i]:
            yield i


RULES = [files_lie_in_versioned_packages, names_have_their_cases, enum_values_are_prefixed, methods_have_their_own_messages,
         arrays_are_packed, everything_is_explained]


def violations(descriptors, packages="perceptron."):
    """["location: what is wrong"] of the files in packages that begin so; others' files keep the style of others."""
    return [f"{location}: {what}" for file in descriptors.file if file.package.startswith(packages) for rule in RULES for location, what in rule(file)]
