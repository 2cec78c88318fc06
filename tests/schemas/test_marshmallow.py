"""Marshmallow schemas: their JSON Schema, their rules, and faults at our places."""

from __future__ import annotations

import datetime as dt
import enum
from typing import Any

import pytest
from marshmallow import INCLUDE, Schema, ValidationError, fields, validate, validates_schema

from bigbrain.errors import SchemaError, WiringError
from bigbrain.schemas import extract, shape
from tests.schemas.strict_server import refusals


class Kind(enum.Enum):
    low = 1
    high = 2


class AuthorSchema(Schema):
    name = fields.String(required=True, metadata={"description": "full name"}, validate=validate.Length(min=1, max=9))
    born = fields.Date()
    stars = fields.Integer(strict=True, load_default=3, validate=validate.Range(min=1, max=5, max_inclusive=False))


class BookSchema(Schema):
    title = fields.String(required=True, data_key="Title")
    genre = fields.String(validate=validate.OneOf(["novel", "poem"]))
    author = fields.Nested(AuthorSchema, required=True)
    others = fields.List(fields.Nested(AuthorSchema), load_default=list)
    sold = fields.Dict(keys=fields.String(), values=fields.Integer())
    kind = fields.Enum(Kind)
    price = fields.Float(allow_none=True)
    printed = fields.DateTime()
    in_print = fields.Boolean(load_default=True)
    pages = fields.Integer(dump_only=True)
    sequels = fields.List(fields.Nested(lambda: BookSchema(exclude=("sold",))))

    @validates_schema
    def one_genre(self, data: dict[str, Any], **_: Any) -> None:
        if data["title"] == data["author"]["name"]:
            raise ValidationError("is named like its author")


def test_the_json_schema_tells_the_fields_and_their_limits() -> None:
    author = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 9, "description": "full name"},
            "born": {"type": "string", "format": "date"},
            "stars": {"type": "integer", "minimum": 1, "exclusiveMaximum": 5, "default": 3},
        },
        "required": ["name"],
    }

    assert shape(AuthorSchema).schema == author
    assert shape(AuthorSchema).name == "AuthorSchema"
    book = shape(BookSchema).schema["properties"]
    assert list(book)[:2] == ["Title", "genre"]
    assert "pages" not in book
    assert book["genre"] == {"type": "string", "enum": ["novel", "poem"]}
    assert book["author"] == author
    assert book["sold"] == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert book["kind"] == {"type": "string", "enum": ["low", "high"]}
    assert book["price"] == {"anyOf": [{"type": "number"}, {"type": "null"}]}
    assert book["printed"] == {"type": "string", "format": "date-time"}
    assert book["sequels"] == {"type": "array", "items": {"$ref": "#/$defs/Book"}}


def test_an_answer_is_loaded() -> None:
    text = 'Here: {"Title": "T", "author": {"name": "A", "born": "2000-01-02"}, "kind": "high", "why": "remark"}'

    assert extract(text, BookSchema) == {
        "title": "T",
        "author": {"name": "A", "born": dt.date(2000, 1, 2), "stars": 3},
        "others": [],
        "kind": Kind.high,
        "in_print": True,
    }


def test_null_counts_as_left_out_where_null_is_not_allowed() -> None:
    answer = {"Title": "T", "author": {"name": "A", "born": None, "stars": None}, "genre": None, "price": None}

    assert shape(BookSchema).read(answer) == {
        "title": "T",
        "author": {"name": "A", "stars": 3},
        "others": [],
        "price": None,
        "in_print": True,
    }


def test_faults_are_told_with_their_path() -> None:
    answer = {
        "genre": "song",
        "author": {"name": "", "stars": 7, "extra": 1},
        "others": [{"name": "A"}, {"name": 3}],
        "sold": {"de": "many"},
    }

    with pytest.raises(SchemaError) as caught:
        shape(BookSchema).read(answer)

    assert sorted(str(caught.value).splitlines()[1:]) == [
        "- Title: missing data for required field.",
        "- author.name: length must be between 1 and 9.",
        "- author.stars: must be greater than or equal to 1 and less than 5.",
        "- genre: must be one of: novel, poem.",
        "- others[1].name: not a valid string.",
        "- sold.de.value: not a valid integer.",
    ]


def test_a_fault_of_the_whole_schema_has_the_place_of_the_object() -> None:
    with pytest.raises(SchemaError, match=r"\n- is named like its author$"):
        shape(BookSchema).read({"Title": "A", "author": {"name": "A"}})


def test_a_schema_of_many_is_wrapped() -> None:
    many = shape(AuthorSchema(many=True, only=("name",)))

    assert many.schema["properties"]["value"]["type"] == "array"
    assert many.read({"value": [{"name": "A", "remark": 1}]}) == [{"name": "A"}]
    assert many.write([{"name": "A"}]) == {"value": [{"name": "A"}]}


def test_a_schema_that_includes_unknown_keys_keeps_them() -> None:
    class Loose(Schema):
        class Meta:
            unknown = INCLUDE

        a = fields.Integer()

    assert shape(Loose).read({"a": 1, "b": 2}) == {"a": 1, "b": 2}
    assert shape(Loose).strict is None


def test_a_strict_server_takes_the_strict_form() -> None:
    assert refusals(shape(AuthorSchema).strict or {}) == []
    assert refusals(shape(BookSchema(exclude=("sold", "sequels"))).strict or {}) == []


def test_a_field_without_a_json_schema_is_named() -> None:
    class Own(fields.Field[str]):
        pass

    class Odd(Schema):
        it = Own()

    with pytest.raises(WiringError, match=r"`Odd.it`: a `Own` has no JSON Schema"):
        shape(Odd)


@pytest.mark.parametrize(
    ("field", "schema"),
    [
        (fields.UUID(), {"type": "string", "format": "uuid"}),
        (fields.Email(), {"type": "string", "format": "email"}),
        (fields.Decimal(), {"type": "string"}),
        (fields.Raw(), {}),
        (fields.Constant(3), {"enum": [3]}),
        (fields.Enum(Kind, by_value=True), {"enum": [1, 2]}),
        (fields.DateTime(format="timestamp"), {"type": "number"}),
        (fields.TimeDelta(), {"type": "number"}),
        (
            fields.Tuple((fields.Integer(), fields.String())),
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        ),
        (fields.Pluck(AuthorSchema, "born"), {"type": "string", "format": "date"}),
        (fields.Nested(AuthorSchema(only=("born",), many=True)), {"type": "array"}),
        (fields.List(fields.Integer(), validate=validate.Length(equal=2)), {"minItems": 2, "maxItems": 2}),
        (fields.String(validate=[validate.Regexp("^a"), validate.Equal("ab")]), {"pattern": "^a", "enum": ["ab"]}),
    ],
)
def test_each_field_has_its_json_schema(field: Any, schema: dict[str, Any]) -> None:
    written = shape(Schema.from_dict({"it": field})).schema["properties"]["it"]

    assert {key: written[key] for key in schema} == schema
