"""What an object says about itself before anything else: its kind, and its items if it is a list."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Envelope(msgspec.Struct, Generic[T], rename="camel", gc=False):
    kind: str | None = None
    api_version: str | None = None
    items: list[T] | None = None


RawEnvelope = Envelope[msgspec.Raw]
"""The envelope of JSON: the items stay undecoded."""
