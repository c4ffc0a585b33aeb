"""Behind a proxy: real requests with the headers that it adds."""

import http.client
import re
from urllib.parse import urlencode

OUTSIDE = "https://board.example.org"


def ask(server, method, path, address, sent=None, **headers):
    """Ask as a proxy would for somebody at this address, and return the status, headers and text."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    forwarded = {"Host": "board.example.org", "X-Forwarded-For": address, "X-Forwarded-Proto": "https"}
    form = {"Content-Type": "application/x-www-form-urlencoded"} if sent else {}
    connection.request(method, path, urlencode(sent or {}), {**forwarded, **form, **headers})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, text


def guess(server, address, number):
    """Try to sign in, and return the status."""
    _, headers, text = ask(server, "GET", "/login", address)
    csrf = re.search(r'name="csrf" value="(\w+)"', text)[1]
    sent = {"csrf": csrf, "name": f"Somebody {number}", "password": "a wrong horse"}
    cookie = headers["set-cookie"].split(";")[0]
    return ask(server, "POST", "/login", address, sent, Cookie=cookie)[0]


def test_a_trusted_proxy(world, make_server):
    server = make_server(world.site.folder, scorers=1, url=OUTSIDE)
    assert f"{OUTSIDE}/link/" in server.output.read_text()
    status, headers, _ = ask(server, "GET", "/login", "192.0.2.1")
    assert status == 200
    assert headers["set-cookie"].startswith("__Host-board=")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=lax"} <= set(headers["set-cookie"].split("; "))
    assert headers["strict-transport-security"]
    assert ask(server, "GET", "/login/", "192.0.2.1")[1]["location"] == f"{OUTSIDE}/login"
    statuses = [guess(server, "192.0.2.1", number) for number in range(21)]
    assert statuses == [400] * 20 + [429]
    assert guess(server, "192.0.2.2", 21) == 400  # somebody else
    assert guess(server, "198.51.100.9, 192.0.2.1", 22) == 429  # the same, who claims to come from elsewhere


def test_a_header_from_elsewhere_is_not_believed(world, make_server):
    server = make_server(world.site.folder, scorers=1, url=OUTSIDE, trusted="192.0.2.99")
    statuses = [guess(server, f"192.0.2.{number}", number) for number in range(21)]
    assert statuses == [400] * 20 + [429]
