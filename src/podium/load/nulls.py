"""Go's reading of JSON null: a field that is null is a field that is not there."""

from __future__ import annotations

import datetime
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
import msgspec.inspect as inspect

T = TypeVar("T", bound=inspect.Type)


def without_nulls(value: object, type_: type[msgspec.Struct]) -> object:
    """The value with every null that `type_` does not expect left out, or zero where something must stand.

    Unset fields are left out; in maps and lists an entry stays, as the empty value of its type. Timestamps, which
    YAML readers other than ours make of dates, become text again.
    """
    return _clean(value, _type_info(type_))


@lru_cache(maxsize=256)
def _type_info(type_: type) -> inspect.Type:
    return inspect.type_info(type_)


def _clean(value: Any, type_: inspect.Type) -> Any:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, dict):
        if (struct := _part(type_, inspect.StructType)) is not None:
            fields = {field.encode_name: field.type for field in struct.fields}
            return {
                key: _clean(item, fields[key]) if key in fields else item
                for key, item in value.items()
                if item is not None
            }
        if (mapping := _part(type_, inspect.DictType)) is not None:
            return {key: _item(item, mapping.value_type) for key, item in value.items()}
    elif isinstance(value, list) and (sequence := _part(type_, inspect.ListType)) is not None:
        return [_item(item, sequence.item_type) for item in value]
    return value


def _item(value: Any, type_: inspect.Type) -> Any:
    if value is not None or _part(type_, inspect.NoneType) is not None:
        return _clean(value, type_)
    for part, zero in ((inspect.IntType, 0), (inspect.StrType, ""), (inspect.StructType, {}), (inspect.DictType, {})):
        if _part(type_, part) is not None:
            return zero
    return value


def _part(type_: inspect.Type, part: type[T]) -> T | None:
    """`type_`, or the member of it if it is a union, that is of the wanted sort."""
    members = type_.types if isinstance(type_, inspect.UnionType) else (type_,)
    return next((member for member in members if isinstance(member, part)), None)
