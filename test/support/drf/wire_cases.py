"""Requests about the report, bodies, content types, routes, tokens, pages and filters."""
import json

from cases import DIGITS, FIELDS, FIELD_1, FOLD, HOOKS, HOOK_1, JSON_404, LIST, LISTS, LIST_1, NO_BODY, OVERFLOW, PEOPLE
from cases import PERSON_1, PROBED, REPORT, REPORT_RANGE, SEND, SLASH, TOKEN_VALUE, ask


def report():
    days = "?date_from=01.02.2026&date_to=03.02.2026"
    ask("report", "GET", REPORT + days)
    for what, query in {
        "ISO dates": "?date_from=2026-02-01&date_to=2026-02-03",
        "31 February": "?date_from=31.02.2026",
        "one digit": "?date_from=1.2.2026&date_to=3.2.2026",
        "blank dates": "?date_from=&date_to=",
        "text": "?date_to=today",
        "two-digit year": "?date_from=01.02.26",
        "campaign no UUID": days + "&campaign_unique_id=abc",
        "campaign blank": days + "&campaign_unique_id=",
        "campaign unknown": days + "&campaign_unique_id=7f1c6f5e-4a43-4d0f-9c1d-0a4f5f9c2f11",
        "event types": days + "&event_types=SENT&event_types=OPENED",
        "event type unknown": days + "&event_types=SENT&event_types=CLICKED",
        "two event types unknown": days + "&event_types=CLICKED&event_types=X",
        "event types joined by a comma": days + "&event_types=SENT,OPENED",
        "event type in lower case": days + "&event_types=sent",
        "event type blank": days + "&event_types=",
        "date given twice": days + "&date_to=05.02.2026",
        "unknown parameter": days + "&tag=x",
        "everything wrong": "?date_from=x&date_to=y&campaign_unique_id=z&event_types=q",
    }.items():
        why = "blank dates mean no dates; the default window differs" if what == "blank dates" else None
        ask(f"report: {what}", "GET", REPORT + query, differs=why)
    ask("report: reversed", "GET", REPORT + "?date_from=03.02.2026&date_to=01.02.2026", differs=REPORT_RANGE)
    ask("report: POST", "POST", REPORT, {})


def bodies():
    for method, path in (("POST", LISTS), ("PUT", LIST_1), ("PATCH", LIST_1), ("POST", PEOPLE), ("POST", SEND)):
        for what, value in {"list": [LIST], "empty list": [], "string": "x", "number": 5, "float": 1.5, "null": None, "true": True}.items():
            ask(f"{method} {path}: the body is {what}", method, path, value)
    for what, raw in {
        "nothing": "", "spaces": "  ", "{": "{", "no JSON": "name=x", "a trailing comma": '{"name": "x",}', "two values": "{} {}",
        "NaN": '{"name": NaN}', "Infinity": '{"name": -Infinity}', "single quotes": "{'name': 'x'}", "BOM": "\ufeff{}",
        "a control character in a string": '{"name": "a\tb", "email_reason": "x"}', "an unclosed string": '{"name": "x',
        "a comment": "{/* x */}", "a duplicate key": '{"name": "a", "name": "b", "email_reason": "x"}',
        "a lone number with a leading zero": "01",
    }.items():
        why = {"nothing": NO_BODY}.get(what)
        ask(f"POST body: {what}", "POST", LISTS, raw=raw, differs=why)
    json_text = json.dumps(LIST)
    kinds = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml"]
    kinds += ["application/json; charset=utf-8", "application/json;charset=latin-1", "APPLICATION/JSON", "text/json", ""]
    for kind in kinds + ["application/vnd.api+json", "application/*", "json", "text/plain; charset=utf-8"]:
        ask(f"POST content type {kind or 'empty'}", "POST", LISTS, raw=json_text, headers={"Content-Type": kind})
    for kind in ["application/json", "*/*", "text/html", "application/*", "text/html, */*;q=0.1", "application/xml"]:
        ask(f"GET Accept {kind}", "GET", LIST_1, headers={"Accept": kind})


def routes():
    for method, path in (("POST", LIST_1), ("PUT", LISTS), ("PATCH", LISTS), ("DELETE", LISTS), ("DELETE", PEOPLE), ("PUT", PEOPLE),
                         ("POST", PERSON_1), ("POST", FIELD_1), ("DELETE", FIELDS), ("POST", HOOK_1), ("DELETE", HOOKS),
                         ("PUT", SEND), ("DELETE", SEND), ("DELETE", REPORT), ("DELETE", HOOK_1 + "run_test/")):
        ask(f"wrong method: {method} {path}", method, path, *([] if method == "DELETE" else [{}]))
    ask("wrong method: TRACE", "TRACE", LISTS)
    ask("wrong method: of an unknown id", "POST", LISTS + "99/", {})
    ask("wrong method: without token", "DELETE", LISTS, token=False)
    ask("wrong method: of an unknown list", "DELETE", LISTS + "99/subscribers/")
    ask("OPTIONS", "OPTIONS", FIELDS, differs=PROBED)
    ask("HEAD list", "HEAD", LIST_1)
    ask("HEAD unknown list", "HEAD", LISTS + "99/")
    for base in (LISTS, PEOPLE, FIELDS, HOOKS):
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            ask(f"unknown id: {method} {base}", method, base + "99/", *([{}] if method.startswith("P") else []))
        for word in ("abc", "-1", "0", "%31", "1e0"):
            ask(f"odd id {word}: {base}", "GET", f"{base}{word}/")
        for word in ("1%20", "01", "+1", "%D9%A1"):
            ask(f"odd id {word}: {base}", "GET", f"{base}{word}/", differs=DIGITS)
        ask(f"odd id 1.5: {base}", "GET", base + "1.5/", differs=JSON_404)
        ask(f"odd id 2^64: {base}", "GET", f"{base}{2**64}/", differs=OVERFLOW)
    ask("unknown id: GET subscribers of an unknown list", "GET", LISTS + "99/subscribers/")
    ask("unknown id before a wrong body", "PATCH", LISTS + "99/", {"name": ""})
    ask("broken JSON for an unknown id", "PATCH", LISTS + "99/", raw="{")
    ask("unsupported type for an unknown id", "PATCH", LISTS + "99/", raw="x", headers={"Content-Type": "text/plain"})
    ask("unknown route", "GET", "/nope/", differs=JSON_404)
    ask("unknown route: root", "GET", "/", differs="mailctl describes itself there")
    ask("unknown route: without token", "GET", "/nope/", token=False, differs=JSON_404)
    ask("no trailing slash: GET", "GET", "/sub/lists", differs=SLASH)
    ask("no trailing slash: GET with a query", "GET", "/sub/lists?page=1", differs=SLASH)
    ask("no trailing slash: POST", "POST", "/sub/lists", LIST, differs=SLASH)
    ask("no trailing slash: DELETE", "DELETE", "/sub/lists/1", differs=SLASH)
    ask("two slashes", "GET", "/sub//lists/", differs=JSON_404)
    for name, token in {"none": None, "wrong": "x", "blank": "", "wrong case": TOKEN_VALUE.upper(), "padded": f" {TOKEN_VALUE} "}.items():
        headers = {} if token is None else {"X-Secure-Token": token}
        why = "mailctl strips nothing; HTTP itself trims headers" if name == "padded" else None
        ask(f"token {name}", "GET", LISTS, token=False, headers=headers, differs=why)
    ask("token none: unknown id", "GET", LISTS + "99/", token=False)
    ask("token none: wrong body", "POST", LISTS, raw="{", token=False)
    ask("token none: Authorization in its place", "GET", LISTS, token=False, headers={"Authorization": f"Token {TOKEN_VALUE}"})


def pages():
    for query in ("", "page=1", "page=2", "page=0", "page=-1", "page=abc", "page=last", "page=", "page=1.0",
                  "page=99999999999999999999", "page=1&page=2", "page_size=5", "page_size=5&page=2", "page_size=5&page=3", "page_size=5&page=last",
                  "page_size=5&page=4", "page_size=0", "page_size=-5", "page_size=abc", "page_size=", "page_size=1000", "page_size=5000",
                  "page_size=5&page=2&is_active=true&email__icontains=p", "page_size=5&x=a%20b&x=c", "page_size=5&email__icontains=%C3%A9",
                  "page_size=2&email__icontains=p1&page=2"):
        ask(f"page: ?{query}", "GET", f"{PEOPLE}?{query}")
    for query in ("page=01", "page=%201", "page=+1", "page=%D9%A1"):
        ask(f"page: ?{query}", "GET", f"{PEOPLE}?{query}", differs=DIGITS)
    ask("page: 1 of nothing", "GET", LISTS + "2/subscribers/")
    ask("page: 1 of nothing, asked for", "GET", LISTS + "2/subscribers/?page=1")
    ask("page: 2 of nothing", "GET", LISTS + "2/subscribers/?page=2")
    for base in (LISTS, FIELDS, HOOKS):
        ask(f"page: {base}", "GET", base)
        ask(f"page: past the end of {base}", "GET", base + "?page=2")
    for word in ("True", "False", "true", "false", "1", "0", "TRUE", "yes", "no", "on", "t", "maybe", "", "null", "None", "%20true", "2"):
        ask(f"filter: is_active={word}", "GET", f"{PEOPLE}?is_active={word}")
    ask("filter: is_active twice", "GET", f"{PEOPLE}?is_active=true&is_active=false")
    for query in ("email__icontains=P1", "email__icontains=", "email__icontains=%25", "email__icontains=_", "email__icontains=%20p12%20",
                  "email__icontains=nobody", "email__exact=p1@example.com", "email__exact=p1", "email__exact=", "email=p1@example.com",
                  "email__exact=p1@example.com&is_active=false", "email__icontains=p1&is_active=true", "name=P%201", "unknown=1"):
        ask(f"filter: {query}", "GET", f"{PEOPLE}?{query}")
    ask("filter: email__exact in other case", "GET", PEOPLE + "?email__exact=P1@EXAMPLE.COM", differs=FOLD)
    ask("filter: NUL", "GET", PEOPLE + "?email__exact=%00")
    ask("filter: NUL within", "GET", PEOPLE + "?email__icontains=a%00b")


parts = [report, bodies, routes, pages]
