"""The requests that record.py sends to the Django service, and why answers of mailctl differ on purpose."""
TOKEN_VALUE = "django-token"
TOKEN = {"X-Secure-Token": TOKEN_VALUE}
LIST = {"name": "News", "email_reason": "You signed up"}
PERSON = {"email": "new@example.com"}
FIELD = {"variable": "town", "name": "Town"}
HOOK = {"url": "https://example.com/hook", "type": "OPENED"}
SENDER = {"from_email": "second@example.com", "full_name": "Second"}
LETTER = {"from": "news@example.com", "to": ["a@example.com"], "subject": "Hi", "text_body": "Hello"}
LISTS, FIELDS, HOOKS, SENDERS, SEND = "/sub/lists/", "/sub/fields/", "/webhooks/", "/senders/", "/message/send/"
PEOPLE, REPORT = "/sub/lists/1/subscribers/", "/stat/reports/events-report/"
LIST_1, PERSON_1, FIELD_1, HOOK_1, SENDER_1 = (path + "1/" for path in (LISTS, PEOPLE, FIELDS, HOOKS, SENDERS))
WRONG = {"null": None, "list": ["x"], "object": {"a": 1}, "integer": 7, "float": 1.5, "true": True, "blank": "", "spaces": "  "}
NUL = "a\0b"

TRIM = "mailctl keeps this text as it is written (it trims no passwords, bodies, headers, context or meta)"
UNIQUE = "mailctl names the field: Subscriber with this email already exists in this list."
OWN_TEXT = "the framework has no text for this, and the Django service words it differently on purpose"
JSON_404 = "mailctl answers unknown routes with JSON"
PUT_KEEPS = "a PUT without an optional field keeps its value in Django; mailctl resets it to the default"
SLASH = "mailctl serves the path without its slash"
FOLD = "mailctl compares addresses without regard to case"
OVERFLOW = "the Django service crashes; mailctl refuses the value or does not find it"
NAME_OF_VARIABLE = "mailctl requires ^[A-Za-z_][A-Za-z0-9_]{0,63}$ and reserves some names"
PROBED = "mailctl does not support OPTIONS"
META_VALUES = "mailctl accepts strings, numbers, booleans and null as values of meta"
HTTP_ONLY = "mailctl accepts only http and https"
RUN_HEAD = "mailctl refuses HEAD, because run_test sends a notification"
REPORT_RANGE = "mailctl refuses a reversed range and more than 366 days"
NO_BODY = "mailctl may call this a parse error"
FLOAT_TEXT = "JavaScript cannot distinguish 5.0 from 5 in JSON"
DISPLAY = "mailctl accepts a display name in from"

UNIQUE_FIELD = "mailctl answers: This field must be unique."
LOCATION = "Django treats the field named url as the URL of the record and answers it as Location; mailctl sends no Location"
REPR = "the Django service prints the value as Python does"
DIGITS = "Django accepts whatever Python parses as an integer; mailctl accepts decimal digits"
BAD_PORT = "mailctl accepts ports up to 65535"

cases = []


def ask(name, method, path, body=..., *, raw=None, headers=None, differs=None, token=True, seed=False):
    """Adds a case; `body` is sent as JSON, and `raw` unchanged."""
    request = {"method": method, "path": path, "headers": {**(TOKEN if token else {}), **(headers or {})}}
    if body is not ...:
        request["body"] = body
    if raw is not None:
        request["raw"] = raw
    if (body is not ... or raw is not None) and "Content-Type" not in request["headers"]:
        request["headers"]["Content-Type"] = "application/json"
    cases.append({"name": name, "request": request, "differs": differs, "seed": seed})


def ask_each(name, method, path, valid, field, values, **more):
    for what, value in values.items():
        ask(f"{name}: {field} {what}", method, path, {**valid, field: value}, **more)


def without(body, *names):
    return {key: value for key, value in body.items() if key not in names}


def wrong(*names):
    return {name: WRONG[name] for name in names}


def seed():
    ask("a list", "POST", LISTS, {"name": "First", "email_reason": "Because"}, seed=True)
    ask("another list", "POST", LISTS, {"name": "Second", "email_reason": "Because"}, seed=True)
    ask("a field", "POST", FIELDS, {"variable": "city", "name": "City"}, seed=True)
    ask("another field", "POST", FIELDS, {"variable": "age", "name": "Age"}, seed=True)
    for n in range(1, 13):
        person = {"email": f"p{n}@example.com", "name": f"P {n}", "is_active": n % 3 != 0, "meta": '{"city": "Oslo"}'}
        ask(f"person {n}", "POST", PEOPLE, person, seed=True)
    hook = {**HOOK, "is_auth_enabled": True, "login": "u", "password": "p"}
    ask("a notification", "POST", HOOKS, hook, seed=True)


def lists():
    texts = wrong("null", "list", "object", "integer", "float", "true", "blank", "spaces")
    texts |= {"false": False, "5.0": 5.0, "255 long": "x" * 255, "256 long": "x" * 256, "with NUL": NUL, "padded": "  x "}
    for field in ("name", "email_reason"):
        for what, value in texts.items():
            why = FLOAT_TEXT if what == "5.0" else None
            ask(f"create list: {field} {what}", "POST", LISTS, {**LIST, field: value}, differs=why)
    ask("create list", "POST", LISTS, LIST)
    ask("create list: nothing given", "POST", LISTS, {})
    ask("create list: both wrong", "POST", LISTS, {"name": "", "email_reason": None})
    ask("create list: two complaints about one text", "POST", LISTS, {**LIST, "name": "\0" * 256})
    ask("create list: tabs and line breaks inside", "POST", LISTS, {**LIST, "name": "\n a\tb\r\nc \u00a0\u3000"})
    ask("create list: lone surrogate", "POST", LISTS, raw='{"name": "a\\ud800b", "email_reason": "x"}')
    ask("create list: 255 astral characters", "POST", LISTS, {**LIST, "name": "\U0001f600" * 255})
    ask("create list: unknown and read-only keys", "POST", LISTS, {**LIST, "id": 99, "date_created": "x", "color": 1})
    ask("PUT list", "PUT", LIST_1, LIST)
    ask("PUT list: only name", "PUT", LIST_1, {"name": "x"})
    ask("PUT list: nothing", "PUT", LIST_1, {})
    ask("PATCH list: nothing", "PATCH", LIST_1, {})
    ask("PATCH list: only name", "PATCH", LIST_1, {"name": "x"})
    ask_each("PATCH list", "PATCH", LIST_1, {}, "name", wrong("null", "blank", "list", "true"))
    ask("get list", "GET", LIST_1)
    ask("delete list", "DELETE", LIST_1)
    ask("delete list: with a body", "DELETE", LIST_1, {"x": 1})


def people():
    ask("create subscriber", "POST", PEOPLE, {**PERSON, "name": "N", "meta": '{"city": "Oslo"}', "is_active": False})
    ask("create subscriber: only email", "POST", PEOPLE, PERSON)
    ask("create subscriber: nothing", "POST", PEOPLE, {})
    emails = wrong("null", "blank", "spaces", "list", "object", "integer", "true")
    emails |= {"without at": "example.com", "without domain": "a@", "without dot": "a@b", "at localhost": "a@localhost"}
    emails |= {"two at": "a@b@example.com", "display name": "A <a@example.com>", "inner space": "a b@example.com"}
    emails |= {"padded": "  pad@example.com ", "with NUL": "a\0@example.com", "line break": "a@example.com\nb"}
    emails |= {"quoted": '"a b"@example.com', "double dot": "a..b@example.com", "address literal": "a@[127.0.0.1]"}
    emails |= {"254 long": "a@" + "b" * 60 + (".cccccccccc" * 17) + ".com", "255 long": "a" * 243 + "@example.com"}
    emails |= {"local part 65": "a" * 65 + "@example.com", "idn": "a@münchen.de", "unicode local": "ü@example.com"}
    emails |= {"trailing dot": "a@example.com.", "underscore domain": "a@ex_ample.com", "plus": "a+b@example.com"}
    ask_each("create subscriber", "POST", PEOPLE, PERSON, "email", emails)
    ask_each("create subscriber", "POST", PEOPLE, PERSON, "name", wrong("null", "blank", "list", "integer", "true", "spaces"))
    ask_each("create subscriber", "POST", PEOPLE, PERSON, "name", {"256 long": "x" * 256, "padded": " x "})
    flags = wrong("null", "blank", "list", "object", "integer", "float") | {"1": 1, "0": 0, "1.0": 1.0, '"true"': "true"}
    flags |= {'"True"': "True", '"off"': "off", '"yes"': "yes", '"no"': "no", '"t"': "t", '"maybe"': "maybe", '"null"': "null"}
    flags |= {'"tRUE"': "tRUE", '" true "': " true ", '"1"': "1", '"F"': "F", '"on"': "on", '"YES"': "YES"}
    ask_each("create subscriber", "POST", PEOPLE, PERSON, "is_active", flags)
    metas = {"object": {"city": "Oslo"}, "string of object": '{"city": "Oslo", "age": 5}', "empty object": {}}
    metas |= {"null": None, "blank": "", "string of nothing JSON": "{city}", "string of list": "[1]", "string of number": "5"}
    metas |= {"string of null": "null", "list": ["x"], "integer": 7, "true": True, "padded values": {"city": "  x "}}
    ask_each("create subscriber", "POST", PEOPLE, PERSON, "meta", metas)
    nested = {"nested value": {"city": {"a": [1, None]}}}
    ask_each("create subscriber", "POST", PEOPLE, PERSON, "meta", nested, differs=META_VALUES)
    ask_each("create subscriber", "POST", PEOPLE, PERSON, "meta", {"unknown key": {"foo": 1}}, differs=OWN_TEXT)
    ask("create subscriber: everything wrong", "POST", PEOPLE, {"email": "x", "name": None, "is_active": "x", "meta": "x"})
    read_only = {**PERSON, "list_id": 2, "source": "FORM", "disable_reason": "X", "is_email_verified": True}
    ask("create subscriber: read-only keys", "POST", PEOPLE, read_only)
    ask("create subscriber: duplicate", "POST", PEOPLE, {"email": "p1@example.com"}, differs=UNIQUE)
    ask("create subscriber: duplicate and wrong", "POST", PEOPLE, {"email": "p1@example.com", "name": None}, differs=UNIQUE)
    ask("create subscriber: duplicate in other case", "POST", PEOPLE, {"email": "P1@Example.com"}, differs=FOLD)
    ask("create subscriber: same address in another list", "POST", LISTS + "2/subscribers/", {"email": "p1@example.com"})
    ask("create subscriber: unknown list, wrong body", "POST", LISTS + "99/subscribers/", {"email": "x"})
    ask("create subscriber: list that is no number", "POST", LISTS + "abc/subscribers/", PERSON)
    ask("create subscriber: unknown list, broken JSON", "POST", LISTS + "99/subscribers/", raw="{")
    ask("PUT subscriber", "PUT", PERSON_1, {"email": "p1@example.com", "name": "X", "is_active": False, "meta": {}})
    ask("PUT subscriber: only email", "PUT", PERSON_1, {"email": "p1@example.com"}, differs=PUT_KEEPS)
    ask("PUT subscriber: only email, inactive one", "PUT", PEOPLE + "3/", {"email": "p3@example.com"}, differs=PUT_KEEPS)
    ask("PUT subscriber: without email", "PUT", PERSON_1, {"name": "X"})
    ask("PUT subscriber: address of another", "PUT", PERSON_1, {"email": "p2@example.com"}, differs=UNIQUE)
    ask("PATCH subscriber: nothing", "PATCH", PERSON_1, {})
    ask("PATCH subscriber: email", "PATCH", PERSON_1, {"email": "changed@example.com"})
    ask("PATCH subscriber: own email again", "PATCH", PERSON_1, {"email": "p1@example.com"})
    ask("PATCH subscriber: address of another", "PATCH", PERSON_1, {"email": "p2@example.com"}, differs=UNIQUE)
    ask("PATCH subscriber: is_active", "PATCH", PERSON_1, {"is_active": False})
    ask("PATCH subscriber: meta replaces", "PATCH", PERSON_1, {"meta": '{"age": 5}'})
    ask_each("PATCH subscriber", "PATCH", PERSON_1, {}, "meta", {"null": None, "list": [1]})
    ask_each("PATCH subscriber", "PATCH", PERSON_1, {}, "email", wrong("null", "blank", "integer"))
    ask_each("PATCH subscriber", "PATCH", PERSON_1, {}, "is_active", wrong("null", "blank"))
    ask("get subscriber", "GET", PERSON_1)
    ask("get subscriber: under another list", "GET", LISTS + "2/subscribers/1/")
    ask("delete subscriber", "DELETE", PERSON_1)


def fields():
    ask("create field", "POST", FIELDS, FIELD)
    ask("create field: nothing", "POST", FIELDS, {})
    ask_each("create field", "POST", FIELDS, FIELD, "variable", wrong("null", "blank", "spaces", "list", "object", "true"))
    ask_each("create field", "POST", FIELDS, FIELD, "variable", {"padded": " x ", "64 long": "x" * 64})
    odd = {"65 long": "x" * 65, "with a space": "a b", "starting with a digit": "1a", "reserved": "email", "integer": 7}
    ask_each("create field", "POST", FIELDS, FIELD, "variable", odd, differs=NAME_OF_VARIABLE)
    ask_each("create field", "POST", FIELDS, FIELD, "name", wrong("null", "blank", "list", "integer") | {"256 long": "x" * 256})
    ask("create field: duplicate variable", "POST", FIELDS, {**FIELD, "variable": "city"}, differs=UNIQUE_FIELD)
    ask("create field: duplicate variable, padded", "POST", FIELDS, {**FIELD, "variable": " city "}, differs=UNIQUE_FIELD)
    ask("create field: duplicate variable, blank name", "POST", FIELDS, {"variable": "city", "name": ""}, differs=UNIQUE_FIELD)
    ask("create field: variable in other case", "POST", FIELDS, {**FIELD, "variable": "City"})
    ask("PUT field", "PUT", FIELD_1, {"variable": "city", "name": "x"})
    ask("PUT field: only variable", "PUT", FIELD_1, {"variable": "city"})
    ask("PATCH field: only variable", "PATCH", FIELD_1, {"variable": "town"})
    ask("PATCH field: variable of another", "PATCH", FIELD_1, {"variable": "age"}, differs=UNIQUE_FIELD)
    ask("get field", "GET", FIELD_1)
    ask("delete field", "DELETE", FIELD_1)


def hooks():
    ask("create notification", "POST", HOOKS, HOOK)
    ask("create notification: nothing", "POST", HOOKS, {})
    urls = wrong("null", "blank", "list", "integer", "true") | {"no scheme": "example.com/x", "javascript": "javascript:alert(1)"}
    urls |= {"no host": "http://", "space": "http://exa mple.com/", "padded": " https://example.com/ ", "port": "http://example.com:8080/"}
    urls |= {"2048 long": "http://example.com/" + "x" * 2029, "2049 long": "http://example.com/" + "x" * 2030}
    urls |= {"name without dot": "http://intranet/", "upper case": "HTTP://EXAMPLE.COM/"}
    urls |= {"user and password": "http://u:p@example.com/", "idn": "http://münchen.de/", "query": "http://example.com?a=b"}
    urls |= {"with NUL": "http://example.com/\0", "line break": "http://example.com/\nx"}
    ask_each("create notification", "POST", HOOKS, HOOK, "url", urls)
    ask_each("create notification", "POST", HOOKS, HOOK, "url", {"ftp": "ftp://example.com/"}, differs=HTTP_ONLY)
    ask_each("create notification", "POST", HOOKS, HOOK, "url", {"bad port": "http://example.com:99999/"}, differs=BAD_PORT)
    types = wrong("null", "blank", "integer") | {"unknown": "CLICKED", "SENT": "SENT"}
    types |= {"lower case": "opened", "padded": " OPENED "}
    ask_each("create notification", "POST", HOOKS, HOOK, "type", types)
    ask_each("create notification", "POST", HOOKS, HOOK, "type", wrong("list", "object", "true"), differs=REPR)
    ask_each("create notification", "POST", HOOKS, HOOK, "is_auth_enabled", wrong("null", "blank", "list") | {'"on"': "on"})
    for name in ("login", "password"):
        ask_each("create notification", "POST", HOOKS, HOOK, name, wrong("null", "blank", "list", "integer", "true"))
        ask_each("create notification", "POST", HOOKS, HOOK, name, {"256 long": "x" * 256})
    ask_each("create notification", "POST", HOOKS, HOOK, "login", {"padded": " x "})
    ask_each("create notification", "POST", HOOKS, HOOK, "password", {"padded": " x "}, differs=TRIM)
    ask("PUT notification: without login and password", "PUT", HOOK_1, HOOK, differs=PUT_KEEPS)
    ask("PUT notification: without type", "PUT", HOOK_1, {"url": HOOK["url"]})
    ask("PATCH notification: only url", "PATCH", HOOK_1, {"url": "https://example.com/other"})
    ask("PATCH notification: type unknown", "PATCH", HOOK_1, {"type": "X"})
    ask("get notification", "GET", HOOK_1)
    ask("test notification: unknown", "GET", HOOKS + "99/run_test/")
    ask("test notification: POST", "POST", HOOK_1 + "run_test/", {})
    ask("test notification: HEAD", "HEAD", HOOK_1 + "run_test/", differs=RUN_HEAD)
    ask("delete notification", "DELETE", HOOK_1)


def senders():
    ask("create sender", "POST", SENDERS, SENDER)
    ask("create sender: nothing", "POST", SENDERS, {})
    addresses = wrong("null", "blank", "list", "integer", "true") | {"no address": "x", "named": "A <a@example.com>", "padded": " a@example.com "}
    ask_each("create sender", "POST", SENDERS, SENDER, "from_email", addresses)
    ask_each("create sender", "POST", SENDERS, SENDER, "reply_to_email", addresses)
    ask_each("create sender", "POST", SENDERS, SENDER, "full_name", wrong("null", "blank", "list", "integer") | {"256 long": "x" * 256, "NUL": NUL})
    ask("create sender: not verified", "POST", SENDERS, {**SENDER, "is_verified": False})
    taken = {"from_email": "news@example.com", "full_name": "x" * 256}
    ask("create sender: duplicate and a long name", "POST", SENDERS, taken, differs=UNIQUE_FIELD)
    ask("PUT sender", "PUT", SENDER_1, {"from_email": "news@example.com", "full_name": "News", "reply_to_email": "desk@example.com"})
    ask("PUT sender: nothing", "PUT", SENDER_1, {})
    ask("PATCH sender: only name", "PATCH", SENDER_1, {"full_name": "News"})
    ask("PATCH sender: nothing", "PATCH", SENDER_1, {})
    ask("get sender", "GET", SENDER_1)
    ask("get sender: unknown", "GET", SENDERS + "99/")
    ask("list senders", "GET", SENDERS)
    ask("senders: PATCH", "PATCH", SENDERS, {})
    ask("delete sender", "DELETE", SENDER_1)
    ask("delete sender: unknown", "DELETE", SENDERS + "99/")


def sending():
    ask("send", "POST", SEND, LETTER)
    ask("send: from as a list of one", "POST", SEND, {**LETTER, "from": ["news@example.com"]})
    ask("send: nothing", "POST", SEND, {})
    ask_each("send", "POST", SEND, LETTER, "from", wrong("null", "blank", "object", "integer", "true") | {"no address": "x"})
    ask_each("send", "POST", SEND, LETTER, "from", {"empty list": [], "list of two": ["a@example.com", "b@example.com"]})
    ask_each("send", "POST", SEND, LETTER, "from", {"display name": "News <news@example.com>"}, differs=DISPLAY)
    ask_each("send", "POST", SEND, LETTER, "from", {"not verified": "other@example.com"}, differs=OWN_TEXT)
    for name in ("to", "cc", "bcc", "reply_to"):
        odd = wrong("null", "object", "integer", "true") | {"a string": "a@example.com", "empty list": []}
        odd |= {"list with null": [None], "list with blank": ["a@example.com", ""], "list with list": [["a@example.com"]]}
        odd |= {"list with wrong ones": ["a@example.com", "x", "b@example.com", 5], "list with object": [{"a": 1}]}
        ask_each("send", "POST", SEND, LETTER, name, odd)
    for name in ("headers", "context"):
        odd = wrong("null", "list", "integer", "true") | {"a string": "x", "empty": {}, "value null": {"X-A": None}}
        odd |= {"value list": {"X-A": ["x"]}, "value object": {"X-A": {}}, "value integer": {"X-A": 5}, "value true": {"X-A": True}}
        odd |= {"two wrong values": {"X-A": None, "X-B": "ok", "X-C": []}}
        ask_each("send", "POST", SEND, LETTER, name, odd)
        ask_each("send", "POST", SEND, LETTER, name, {"value blank": {"X-A": ""}}, differs="mailctl accepts empty values")
        ask_each("send", "POST", SEND, LETTER, name, {"value with NUL": {"X-A": NUL}})
    for name in ("subject", "text_body", "html_body", "tag"):
        ask_each("send", "POST", SEND, LETTER, name, wrong("null", "blank", "list", "object", "integer", "true") | {"with NUL": NUL})
    ask_each("send", "POST", SEND, LETTER, "subject", {"998 long": "x" * 998, "999 long": "x" * 999})
    ask_each("send", "POST", SEND, LETTER, "tag", {"256 long": "x" * 256})
    ask_each("send", "POST", SEND, LETTER, "type", wrong("null", "blank", "integer") | {"unknown": "MASS", "BULK": "BULK"})
    ask_each("send", "POST", SEND, LETTER, "type", wrong("list", "object", "true"), differs=REPR)
    ask_each("send", "POST", SEND, LETTER, "disable_inline", wrong("null", "blank", "list") | {'"on"': "on", "true": True})
    uuids = wrong("null", "blank", "list", "float") | {"no UUID": "abc", "negative": -1, "too big": 2**128}
    ask_each("send", "POST", SEND, LETTER, "template_unique_id", uuids)
    known = {"unknown": "7f1c6f5e-4a43-4d0f-9c1d-0a4f5f9c2f11", "unknown, no hyphens": "7f1c6f5e4a434d0f9c1d0a4f5f9c2f11"}
    known |= {"in braces": "{7f1c6f5e-4a43-4d0f-9c1d-0a4f5f9c2f11}", "urn": "urn:uuid:7f1c6f5e-4a43-4d0f-9c1d-0a4f5f9c2f11"}
    known |= {"upper case": "7F1C6F5E-4A43-4D0F-9C1D-0A4F5F9C2F11", "integer": 7, "true": True}
    ask_each("send", "POST", SEND, LETTER, "template_unique_id", known, differs=OWN_TEXT)
    ask("send: no subject", "POST", SEND, without(LETTER, "subject"))
    ask("send: no body", "POST", SEND, without(LETTER, "text_body"))
    ask("send: no subject, no body", "POST", SEND, without(LETTER, "subject", "text_body"))
    ask("send: no body and a wrong address", "POST", SEND, {**without(LETTER, "text_body"), "to": ["x"]})
    ask("send: GET", "GET", SEND)


parts = [seed, lists, people, fields, hooks, senders, sending]
