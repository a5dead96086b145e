"""Sends a table of requests to the Django service and writes its answers: python3 record.py [file]

Each case starts from the same seed (the first entries, marked "seed", which are requests as well) and is undone
afterwards, so ids are the same in every run. Dates and message ids are replaced by <date> and <uuid>.
The page settings are those of mailctl (100 per page, page_size up to 1000), so that pages can be compared.
"differs" says why mailctl answers differently on purpose.
"""
import json
import os
import re
import sys

os.environ["DJANGO_OPTIONS"] = "--page-size 100 --max-page-size 1000"
import cases  # noqa: E402
import service  # noqa: E402
import wire_cases  # noqa: E402
from django.db import transaction  # noqa: E402
from django.test import Client  # noqa: E402

SHOWN = ["Allow", "Content-Type", "Location", "Retry-After", "WWW-Authenticate"]


def send_to_django(client, request):
    headers = {"HTTP_" + k.upper().replace("-", "_"): v for k, v in request["headers"].items() if k != "Content-Type"}
    body = request["raw"] if "raw" in request else json.dumps(request["body"]) if "body" in request else ""
    kind = request["headers"].get("Content-Type", "")
    path = request["path"].partition("?")
    if kind == "" and body != "":
        headers["CONTENT_TYPE"] = ""
    return client.generic(request["method"], path[0], body.encode(), kind, QUERY_STRING=path[2], **headers)


def decode(response):
    text = response.content.decode()
    if text == "" or not response.headers.get("Content-Type", "").startswith("application/json"):
        return text and "<html>"
    text = re.sub(r'"date_created":"[^"]*"', '"date_created":"<date>"', text)
    text = re.sub(r'"id":"[0-9a-f-]{36}"', '"id":"<uuid>"', text)
    return json.loads(text)


def record(client, case):
    response = send_to_django(client, case["request"])
    headers = {name: response.headers[name] for name in SHOWN if name in response.headers}
    answer = {"status": response.status_code, "headers": headers, "body": decode(response)}
    if case["request"]["path"] == cases.HOOKS and "Location" in headers:
        case["differs"] = case["differs"] or cases.LOCATION
    marks = {key: case[key] for key in ("seed", "differs") if case[key]}
    return {"name": case["name"], "request": case["request"], "response": answer, **marks}


def main():
    for part in (*cases.parts, *wire_cases.parts):
        part()
    service.create_tables()
    client = Client(raise_request_exception=False)
    answers = []
    for case in cases.cases:
        with transaction.atomic():
            answers.append(record(client, case))
            transaction.set_rollback(not case["seed"])
    here = os.path.dirname(os.path.abspath(__file__))
    target = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "../../fixtures/drf-answers.json")
    with open(target, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(answer) for answer in answers) + "\n]\n")
    print(f"{len(answers)} answers", file=sys.stderr)


main()
