"""The service document's API with Django REST framework's defaults: an independent service to test mailctl with.

    python3 service.py --port 0 --page-size 10      prints {"port": N, …} when it listens, ends when stdin closes

It uses plain serializers, viewsets and filters. Error texts, codes and headers are the framework's own if it has any.
If neither the document nor the framework has a text (the sender check, unknown variables), the text differs from
mailctl's on purpose, because a client must not match texts.
Needs Debian's python3-djangorestframework (3.14) and python3-django-filters.
"""
import argparse
import itertools
import json
import os
import random
import sys
import tempfile
import threading
from datetime import datetime, timedelta, timezone as zones
from types import SimpleNamespace

import django
from django.conf import settings

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--page-size", type=int, default=10)
parser.add_argument("--max-page-size", type=int, default=0, help="0: page_size is ignored, the framework's default")
parser.add_argument("--token", default="django-token")
parser.add_argument("--sender", default="news@example.com", help="the only sender address of the project")
parser.add_argument("--flaky", action="store_true", help="now and then 503 or 429, both with Retry-After")
parser.add_argument("--retry-after", type=int, default=1, help="seconds that --flaky asks to wait")
parser.add_argument("--busy", type=float, default=0, help="so many percent of requests, at random: 429, or 503 before or after the work")
parser.add_argument("--no-challenge", action="store_true", help="403 in place of 401: no authenticate_header")
parser.add_argument("--now", type=int, help="a clock that stands still, in seconds since 1970")
options = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else os.environ.get("DJANGO_OPTIONS", "").split())

# The file is its own Django app, whether it is run or imported.
sys.modules.setdefault("service", sys.modules[__name__])
folder = tempfile.TemporaryDirectory(prefix="drf-")
settings.configure(
    SECRET_KEY="not secret",
    ALLOWED_HOSTS=["*"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(folder.name, "service.db")}},
    INSTALLED_APPS=["rest_framework", "django_filters", "service"],
    MIDDLEWARE=["service.Flaky", "django.middleware.common.CommonMiddleware"],
    ROOT_URLCONF="service",
    USE_TZ=False,
    LOGGING_CONFIG=None,
    REST_FRAMEWORK={
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
        "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
        "DEFAULT_AUTHENTICATION_CLASSES": ["service.SecureToken"],
        "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
        "DEFAULT_PAGINATION_CLASS": "service.Pages",
        "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
        "PAGE_SIZE": options.page_size,
        "UNAUTHENTICATED_USER": None,
    },
)
django.setup()

from rest_framework import authentication, exceptions, pagination  # noqa: E402

# The framework reads its settings while its views are imported, so the classes that they name come first.


class SecureToken(authentication.BaseAuthentication):
    def authenticate(self, request):
        token = request.headers.get("X-Secure-Token")
        if token is None:
            return None
        if token != options.token:
            raise exceptions.AuthenticationFailed("Invalid token.")
        return SimpleNamespace(is_authenticated=True), token

    def authenticate_header(self, request):
        return None if options.no_challenge else "X-Secure-Token"


class Pages(pagination.PageNumberPagination):
    page_size_query_param = "page_size" if options.max_page_size else None
    max_page_size = options.max_page_size or None


from records import Field, List, Message, Sender, Subscriber, Webhook  # noqa: E402
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.backends.signals import connection_created  # noqa: E402
from django.dispatch import receiver  # noqa: E402
from django.http import HttpResponse, JsonResponse  # noqa: E402
from django.urls import include, path  # noqa: E402
from django.utils import timezone  # noqa: E402
from django_filters import rest_framework as filters  # noqa: E402
from rest_framework import routers, serializers, views, viewsets  # noqa: E402
from rest_framework.decorators import action  # noqa: E402
from rest_framework.generics import get_object_or_404  # noqa: E402
from rest_framework.response import Response  # noqa: E402

if options.now is not None:
    timezone.now = lambda: datetime.fromtimestamp(options.now, zones.utc).replace(tzinfo=None)

REQUIRED = serializers.Field.default_error_messages["required"]
EVENT_TYPES = ["CREATED", "SENT", "OPENED", "REDIRECTED", "UNSUBSCRIBED", "SOFTBOUNCED", "HARDBOUNCED"]


# Shapes


class CurrentList:
    requires_context = True

    def __call__(self, field):
        return field.context["view"].list


class MetaField(serializers.JSONField):
    """Accepts the JSON of an object in a string, as in the document's request table, or the object itself."""

    def to_internal_value(self, data):
        if isinstance(data, str):
            try:
                data = json.loads(data)
            except ValueError:
                self.fail("invalid")
        meta = serializers.DictField().run_validation(data)
        known = set(Field.objects.values_list("variable", flat=True))
        for key in meta:
            if key not in known:
                raise serializers.ValidationError(f'There is no variable "{key}".')
        return meta


class FromField(serializers.EmailField):
    """Accepts one address, as in the document's samples, or an array, as in its parameter table."""

    def to_internal_value(self, data):
        if isinstance(data, list) and len(data) == 1:
            data = data[0]
        return super().to_internal_value(data)


class ListSerializer(serializers.ModelSerializer):
    class Meta:
        model = List
        fields = ["id", "name", "email_reason", "active_subscribers_count", "inactive_subscribers_count"]
        fields += ["overall_subscribers_count", "date_created"]


class SubscriberSerializer(serializers.ModelSerializer):
    list = serializers.HiddenField(default=CurrentList())
    meta = MetaField(required=False)

    class Meta:
        model = Subscriber
        read_only_fields = ["disable_reason", "is_email_verified", "source", "opt_in_signed", "date_created"]
        fields = ["id", "list", "list_id", "email", "name", "is_active", "disable_reason", "is_email_verified"]
        fields += ["meta", "source", "opt_in_signed", "date_created"]


class FieldSerializer(serializers.ModelSerializer):
    class Meta:
        model = Field
        fields = ["id", "variable", "name", "date_created"]


class WebhookSerializer(serializers.ModelSerializer):
    class Meta:
        model = Webhook
        fields = ["id", "url", "type", "is_auth_enabled", "login", "password", "date_created"]


class SenderSerializer(serializers.ModelSerializer):
    class Meta:
        model = Sender
        read_only_fields = ["is_verified"]
        fields = ["id", "full_name", "from_email", "reply_to_email", "is_verified", "date_created"]


class SendSerializer(serializers.Serializer):
    type = serializers.ChoiceField(["TRANSACTIONAL", "BULK"], default="TRANSACTIONAL")
    to = serializers.ListField(child=serializers.EmailField(), allow_empty=False)
    subject = serializers.CharField(max_length=998, required=False)
    text_body = serializers.CharField(required=False)
    html_body = serializers.CharField(required=False)
    template_unique_id = serializers.UUIDField(required=False)
    reply_to = serializers.ListField(child=serializers.EmailField(), required=False)
    cc = serializers.ListField(child=serializers.EmailField(), required=False)
    bcc = serializers.ListField(child=serializers.EmailField(), required=False)
    headers = serializers.DictField(child=serializers.CharField(), required=False)
    disable_inline = serializers.BooleanField(required=False)
    disable_tracking = serializers.BooleanField(required=False)
    context = serializers.DictField(child=serializers.CharField(), required=False)
    tag = serializers.CharField(max_length=255, required=False)

    def get_fields(self):
        return {**super().get_fields(), "from": FromField()}  # `from` is a Python keyword

    def validate_from(self, value):
        if value.lower() != options.sender:
            raise serializers.ValidationError("This sender address is not verified.")
        return value

    def validate(self, attrs):
        if "template_unique_id" in attrs:
            raise serializers.ValidationError({"template_unique_id": "There is no such template."})
        missing = [] if "subject" in attrs else ["subject"]
        if "text_body" not in attrs and "html_body" not in attrs:
            missing += ["text_body", "html_body"]
        if missing:
            raise serializers.ValidationError({name: REQUIRED for name in missing})
        return attrs


class ReportSerializer(serializers.Serializer):
    date_from = serializers.DateField(input_formats=["%d.%m.%Y"], required=False)
    date_to = serializers.DateField(input_formats=["%d.%m.%Y"], required=False)
    campaign_unique_id = serializers.UUIDField(required=False)
    event_types = serializers.MultipleChoiceField(choices=EVENT_TYPES, required=False)


# Endpoints


class SubscriberFilter(filters.FilterSet):
    email__icontains = filters.CharFilter(field_name="email", lookup_expr="icontains")
    email__exact = filters.CharFilter(field_name="email", lookup_expr="exact")
    is_active = filters.BooleanFilter()


class Lists(viewsets.ModelViewSet):
    queryset = List.objects.all()
    serializer_class = ListSerializer


class Subscribers(viewsets.ModelViewSet):
    serializer_class = SubscriberSerializer
    filterset_class = SubscriberFilter

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        self.list = get_object_or_404(List, pk=kwargs["list_id"])

    def get_queryset(self):
        return Subscriber.objects.filter(list=self.list)


class Fields(viewsets.ModelViewSet):
    queryset = Field.objects.all()
    serializer_class = FieldSerializer


class Webhooks(viewsets.ModelViewSet):
    queryset = Webhook.objects.all()
    serializer_class = WebhookSerializer

    @action(detail=True)
    def run_test(self, request, pk):
        self.get_object()
        return Response({"result": True})


class Senders(viewsets.ModelViewSet):
    queryset = Sender.objects.all()
    serializer_class = SenderSerializer


class Send(views.APIView):
    def post(self, request):
        serializer = SendSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        messages = [Message.objects.create(to=to) for to in serializer.validated_data["to"]]
        return Response(
            {
                "messages": [{"to": message.to, "id": str(message.id)} for message in messages],
                "result": True,
                "messages_created": len(messages),
            }
        )


class Events(views.APIView):
    """Accepted messages are sent at once."""

    def get(self, request, message):
        made = get_object_or_404(Message, pk=message).date_created
        told = {"date": made, "count": 1, "url": None, "machine": False}
        return Response({"results": [{"type": kind, **told} for kind in ("CREATED", "SENT")]})


class EventsReport(views.APIView):
    """Nothing is delivered, so only SENT has figures. Without dates it covers eight days, from a week ago to today."""

    def get(self, request):
        serializer = ReportSerializer(data=request.query_params)
        serializer.is_valid(raise_exception=True)
        query = serializer.validated_data
        end = query.get("date_to", timezone.now().date())
        start = query.get("date_from", end - timedelta(days=7))
        days = [start + timedelta(days=n) for n in range((end - start).days + 1)]
        sent = [Message.objects.filter(date_created__date=day).count() for day in days]
        kinds = ["redirected", "softbounced", "unsubscribed", "hardbounced"]
        total = {"sent": sum(sent), "opened": 0, "opened_percent": "0", **{f"{kind}_percent": 0 for kind in kinds}}
        rows = [{"date": f"{day:%d.%m.%Y}", "opened": 0, "sent": n} for day, n in zip(days, sent)]
        return Response({"results": {"total": total, "data": rows}})


router = routers.SimpleRouter()
router.register("sub/lists", Lists)
router.register(r"sub/lists/(?P<list_id>[^/.]+)/subscribers", Subscribers, basename="subscriber")
router.register("sub/fields", Fields)
router.register("webhooks", Webhooks)
router.register("senders", Senders)
urlpatterns = [
    path("", include(router.urls)),
    path("message/send/", Send.as_view()),
    path("message/events/<uuid:message>/", Events.as_view()),
    path("stat/reports/events-report/", EventsReport.as_view()),
]


class Flaky:
    """With --flaky the third of every seven requests gets a proxy's 503 in HTML, and the sixth is throttled."""

    def __init__(self, get_response):
        self.get_response = get_response
        self.numbers = itertools.count(1)

    def __call__(self, request):
        turn = next(self.numbers) % 7 if options.flaky else 0
        headers = {"Retry-After": str(options.retry_after)}
        if turn == 3:
            return HttpResponse("<h1>503</h1>", status=503, headers=headers)
        if turn == 6:
            unit = "second" if options.retry_after == 1 else "seconds"
            body = {"detail": f"Request was throttled. Expected available in {options.retry_after} {unit}."}
            return JsonResponse(body, status=429, headers=headers)
        return self.busy(request) if random.random() * 100 < options.busy else self.get_response(request)

    def busy(self, request):
        """Answers 429 or 503 without doing the work, or 503 after doing it."""
        kind = random.randrange(3)
        if kind == 0:
            return JsonResponse({"detail": "Request was throttled."}, status=429, headers={"Retry-After": "0"})
        if kind == 1:
            return HttpResponse("<h1>503</h1>", status=503, headers={"Retry-After": "0"})
        self.get_response(request)
        return HttpResponse("<h1>503</h1>", status=503)


@receiver(connection_created)
def stay_off_the_disk(connection, **_):
    """Turns syncing off, because the database ends with the process and thousands of syncs would slow other work."""
    connection.cursor().execute("PRAGMA synchronous = OFF")


def create_tables():
    with connection.schema_editor() as editor:
        for model in (List, Subscriber, Field, Webhook, Sender, Message):
            editor.create_model(model)
    Sender.objects.create(from_email=options.sender)


class QuietHandler(WSGIRequestHandler):
    def log_message(self, format, *args):
        pass


def main():
    create_tables()
    server = ThreadedWSGIServer(("127.0.0.1", options.port), QuietHandler)
    server.daemon_threads = True
    server.set_app(get_wsgi_application())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    greeting = {"port": server.server_port, "token": options.token, "sender": options.sender}
    print(json.dumps(greeting), flush=True)
    sys.stdin.read()  # the pipe of the process that started this one, so that both end together
    server.shutdown()


if __name__ == "__main__":
    main()
