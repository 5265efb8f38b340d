"""Who may ask: hosts, origins, tokens, sizes, and the headers that every response has."""

from __future__ import annotations

from typing import Any

import pytest

from podium.web.serving import Guard
from web.calling import Caller

TOKEN = "0123456789abcdef0123"


async def _echo(scope: Any, receive: Any, send: Any) -> None:
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


def guarded(**options: Any) -> Caller:
    return Caller(Guard(_echo, **{"most_bytes": 1000, **options}))


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "LOCALHOST:80"])
def test_own_names_are_served(host: str) -> None:
    assert guarded().get("/", host=host).status == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io:8080", "", "localhost:x"])
def test_other_names_are_refused(host: str) -> None:
    answer = guarded().get("/", host=host)
    assert (answer.status, "--allow-host" in answer.error) == (403, True)


def test_a_name_can_be_allowed() -> None:
    assert guarded(hosts=["podium.example"]).get("/", host="podium.example:443").status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://localhost:8080"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:9999"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "same-origin"}, 200),
        ({"sec_fetch_site": "none"}, 200),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "cors"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}, 200),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}, 403),
    ],
)
def test_pages_of_other_origins_are_refused(headers: dict[str, str], status: int) -> None:
    assert guarded().get("/", None, **headers).status == status


def test_a_link_of_another_site_cannot_post() -> None:
    headers = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert guarded().post("/", b"", **headers).status == 403


def test_a_large_body_is_refused_before_it_is_read() -> None:
    answer = guarded().post("/", b"x" * 1001)
    assert (answer.status, "1,000 bytes" in answer.error) == (413, True)
    assert guarded().post("/", b"x" * 1000).body == b"1000"


def test_content_length_has_to_be_a_number() -> None:
    assert guarded().post("/", b"", content_length="x").status == 400


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x"])
def test_without_the_token_nothing_is_said(given: str) -> None:
    answer = guarded(token=TOKEN).get("/api/v1/overview", authorization=given)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_the_token_opens() -> None:
    assert guarded(token=TOKEN).get("/", authorization=f"Bearer {TOKEN}").status == 200


def test_browsers_are_sent_to_the_login_form_and_get_a_cookie() -> None:
    caller = guarded(token=TOKEN, secure=True)
    sent = caller.get("/", accept="text/html,*/*")
    assert (sent.status, sent.headers["location"]) == (303, "/login")
    assert b"<form" in caller.get("/login").body
    form = {"content_type": "application/x-www-form-urlencoded"}
    assert caller.post("/login", b"token=wrong", **form).status == 403
    opened = caller.post("/login", f"token={TOKEN}".encode(), **form)
    cookie = opened.headers["set-cookie"]
    assert opened.status == 303
    assert {"HttpOnly", "SameSite=Strict", "Secure"} <= {part.strip() for part in cookie.split(";")}
    assert TOKEN not in cookie
    assert caller.get("/", cookie=cookie.partition(";")[0]).status == 200
    assert caller.get("/", cookie="podium-session=other").status == 401


def test_every_response_says_what_a_page_may_do() -> None:
    for answer in (guarded().get("/"), guarded().get("/", host="evil.example"), guarded(token=TOKEN).get("/")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers
