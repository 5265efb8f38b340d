"""How calls fail: always as one line that names the extender and the verb, and never with a secret in it."""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Callable

import pytest

from podium.config.extender_calls import public_url
from podium.errors import ExtenderError
from podium.extenders import Extender, FilterResult
from podium.model import Node, ObjectMeta, Pod

from .loopback import Answer, Loopback

MakeExtender = Callable[..., Extender]

POD = Pod(metadata=ObjectMeta(name="web", namespace="shop"))
NODES = [Node(metadata=ObjectMeta(name="n1"))]

BAD_ANSWERS: dict[str, tuple[Answer, str]] = {
    "not found": (Answer((b"no such page\n",), 404), "answered 404: no such page"),
    "failure without a body": (Answer(status=500), "answered 500"),
    "failure at length": (Answer((b"<p>\n" * 1000,), 503), "answered 503: " + ("<p> " * 30)[:117] + "..."),
    "success of another kind": (Answer((b"{}",), 201), "answered 201: {}"),
    "nothing": (Answer(), "the answer is empty"),
    "garbage": (Answer((b"<html>\x00\xff hello",)), "the answer is not JSON: <html> \ufffd hello"),
    "half an answer": (Answer((b'{"NodeNames": ["n1"',)), 'the answer is not JSON: {"NodeNames": ["n1"'),
    "NaN": (Answer((b"NaN",)), "the answer is not JSON: NaN"),
    "too deep": (Answer((b"[" * 100_000,)), "the answer is not JSON: " + "[" * 77 + "..."),
    "an error field": (Answer((b'{"Error": "out\\nof luck"}',)), "out of luck"),
    "an array": (Answer((b"[]",)), "an array stands where an object with Error should"),
    "names that are none": (Answer((b'{"NodeNames": [1]}',)), "NodeNames is a number, not a string"),
    "a node it was not asked about": (
        Answer((b'{"NodeNames": ["n9"]}',)),
        "passed node 'n9', which it was not asked about",
    ),
}


def test_a_node_that_is_none(loopback: Loopback, extender: MakeExtender) -> None:
    loopback.answer("filter", {"Nodes": {"items": [{"metadata": {"name": "n1"}, "spec": {"taints": 3}}]}})
    with pytest.raises(ExtenderError, match=r"node 'n1', which it passed, is not a Node: Expected `array`, got `int`"):
        extender().filter(POD, NODES)


def test_a_body_without_an_end(loopback: Loopback, extender: MakeExtender) -> None:
    loopback.answers["filter"] = Answer((b" " * (1 << 20),) * 80)
    with pytest.raises(ExtenderError, match=r"filter: answers with more than 64 MiB"):
        extender().filter(POD, NODES)


@pytest.mark.parametrize(("answer", "message"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_bad_answers(loopback: Loopback, extender: MakeExtender, answer: Answer, message: str) -> None:
    loopback.answers["filter"] = answer
    with pytest.raises(ExtenderError) as caught:
        extender(node_cache_capable=True).filter(POD, NODES)
    assert str(caught.value) == f"extender {loopback.url}: filter: {message}"
    assert caught.value.extender == loopback.url


BAD_SCORES: dict[str, tuple[bytes, str]] = {
    "an object": (b"{}", "the answer is an object, not an array"),
    "a string": (b'[{"Host": "n1", "Score": "3"}]', "Score is a string, not a 64-bit integer"),
    "a fraction": (b'[{"Host": "n1", "Score": 3.0}]', "Score is a number, not a 64-bit integer"),
    "a boolean": (b'[{"Host": "n1", "Score": true}]', "Score is a boolean, not a 64-bit integer"),
    "too large": (b'[{"Host": "n1", "Score": 9223372036854775808}]', "Score is a number, not a 64-bit integer"),
    "a bare number": (b"[3]", "a number stands where an object with Host should"),
}


@pytest.mark.parametrize(("body", "message"), BAD_SCORES.values(), ids=BAD_SCORES)
def test_bad_scores(loopback: Loopback, extender: MakeExtender, body: bytes, message: str) -> None:
    loopback.answers["prioritize"] = Answer((body,))
    with pytest.raises(ExtenderError) as caught:
        extender().prioritize(POD, NODES)
    assert str(caught.value) == f"extender {loopback.url}: prioritize: {message}"


def test_a_bind_that_failed(loopback: Loopback, extender: MakeExtender) -> None:
    loopback.answer("bind", {"error": "node is gone"})
    with pytest.raises(ExtenderError, match=r"bind: node is gone$"):
        extender().bind(POD, "n1")


def test_what_follows_the_answer_is_not_read(loopback: Loopback, extender: MakeExtender) -> None:
    loopback.answers["filter"] = Answer((b' {"NodeNames": ["n1"]} <!-- bye -->',))
    assert extender(node_cache_capable=True).filter(POD, NODES) == FilterResult(["n1"])


SLOW_ANSWERS = {
    "never begins": Answer(hold=True),
    "never ends": Answer((b" ",) * 100, pause=0.05),
}


@pytest.mark.parametrize("answer", SLOW_ANSWERS.values(), ids=SLOW_ANSWERS)
def test_an_extender_that_is_slow(loopback: Loopback, extender: MakeExtender, answer: Answer) -> None:
    loopback.answers["filter"] = answer
    began = time.monotonic()
    with pytest.raises(ExtenderError) as caught:
        extender(http_timeout=0.1).filter(POD, NODES)
    assert str(caught.value) == f"extender {loopback.url}: filter: no answer within 0.1 s"
    assert 0.1 <= time.monotonic() - began < 3


@pytest.mark.parametrize("unlimited", [0.0, -1.0])
def test_no_timeout_leaves_time_to_answer(loopback: Loopback, extender: MakeExtender, unlimited: float) -> None:
    loopback.answers["filter"] = Answer((b"nu", b"ll"), pause=0.05)
    assert extender(http_timeout=unlimited).filter(POD, NODES) == FilterResult([])


def test_an_extender_that_is_down(extender: MakeExtender) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(ExtenderError) as caught:
        extender(url_prefix=f"http://127.0.0.1:{port}").filter(POD, NODES)
    message = str(caught.value)
    assert message.startswith(f"extender http://127.0.0.1:{port}: filter: cannot connect: ")
    assert "refused" in message


def test_an_extender_that_recovers(loopback: Loopback, extender: MakeExtender) -> None:
    asked = extender(node_cache_capable=True)
    with pytest.raises(ExtenderError, match="answered 404"):
        asked.filter(POD, NODES)
    loopback.answer("filter", {"NodeNames": ["n1"]})
    assert asked.filter(POD, NODES).passed == ["n1"]


def test_an_extender_that_was_closed(extender: MakeExtender) -> None:
    asked = extender()
    asked.close()
    with pytest.raises(ExtenderError, match="filter: the extender was closed"):
        asked.filter(POD, NODES)


@pytest.mark.parametrize("url", ["", "extender.test/x", "ftp://extender.test", "http://[::1", "http://a:b/c"])
def test_a_url_that_cannot_be_called(extender: MakeExtender, url: str) -> None:
    with pytest.raises(ExtenderError, match=r"filter: .*(URL|protocol)"):
        extender(url_prefix=url).filter(POD, NODES)


def test_redirects_are_followed(loopback: Loopback, extender: MakeExtender) -> None:
    loopback.answers["filter"] = Answer(status=307, headers={"Location": "/elsewhere"})
    loopback.answer("elsewhere", {"NodeNames": ["n1"]})
    assert extender(node_cache_capable=True).filter(POD, NODES).passed == ["n1"]
    assert [request.document["NodeNames"] for request in loopback.requests] == [["n1"], ["n1"]]


def test_redirects_end(loopback: Loopback, extender: MakeExtender) -> None:
    loopback.answers["filter"] = Answer(status=307, headers={"Location": "filter"})
    with pytest.raises(ExtenderError, match="redirects"):
        extender().filter(POD, NODES)


def test_cookies_are_not_kept(loopback: Loopback, extender: MakeExtender) -> None:
    loopback.answers["filter"] = Answer((b"null",), headers={"Set-Cookie": "session=1"})
    asked = extender()
    asked.filter(POD, NODES)
    asked.filter(POD, NODES)
    assert "Cookie" not in loopback.requests[1].headers


def test_loopback_goes_past_a_proxy(
    loopback: Loopback, extender: MakeExtender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    loopback.answer("filter", None)
    assert extender().filter(POD, NODES) == FilterResult([])


class TestSecrets:
    def test_userinfo_is_sent_but_never_shown(self, loopback: Loopback, extender: MakeExtender) -> None:
        url = loopback.url.replace("http://", "http://robot:s3%20cret@")
        loopback.answers["filter"] = Answer((b"you sent s3 cret, or s3%20cret",), 403)
        asked = extender(url_prefix=url)
        with pytest.raises(ExtenderError) as caught:
            asked.filter(POD, NODES)
        sent = base64.b64encode(b"robot:s3 cret").decode()
        assert loopback.requests[0].headers["Authorization"] == f"Basic {sent}"
        assert str(caught.value) == f"extender {loopback.url}: filter: answered 403: you sent ***, or ***"
        assert asked.name == loopback.url
        assert "cret" not in repr(asked)

    def test_an_error_field_cannot_echo_them(self, loopback: Loopback, extender: MakeExtender) -> None:
        loopback.answer("bind", {"Error": "bad password hunter2"})
        with pytest.raises(ExtenderError, match=r"bad password \*\*\*$"):
            extender(url_prefix=loopback.url.replace("//", "//robot:hunter2@")).bind(POD, "n1")

    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            ("https://a.test:8443/x/", "https://a.test:8443/x/"),
            ("https://robot@a.test/x", "https://a.test/x"),
            ("https://robot:p@ss@a.test/x@y", "https://a.test/x@y"),
            ("robot:pass@a.test/x", "a.test/x"),
            ("//robot:pass@a.test", "//a.test"),
            ("http://a.test/x?token=abc", "http://a.test/x"),
            ("http://a.test#token", "http://a.test"),
        ],
    )
    def test_what_is_shown_of_a_url(self, url: str, shown: str) -> None:
        assert public_url(url) == shown
