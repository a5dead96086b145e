"""Models of the Django service. service.py imports them after it has set up the framework."""
import uuid

from django.db import models

WEBHOOK_TYPES = ["OPENED", "UNSUBSCRIBED", "REDIRECTED", "HARDBOUNCED", "SOFTBOUNCED"]


class Record(models.Model):
    date_created = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "service"
        abstract = True
        ordering = ["id"]


class List(Record):
    name = models.CharField(max_length=255)
    email_reason = models.CharField(max_length=255)

    @property
    def active_subscribers_count(self):
        return self.subscribers.filter(is_active=True).count()

    @property
    def inactive_subscribers_count(self):
        return self.subscribers.filter(is_active=False).count()

    @property
    def overall_subscribers_count(self):
        return self.subscribers.count()


class Subscriber(Record):
    list = models.ForeignKey(List, models.CASCADE, related_name="subscribers")
    email = models.EmailField()
    name = models.CharField(max_length=255, blank=True, default="")
    is_active = models.BooleanField(default=True)
    disable_reason = models.CharField(max_length=32, null=True)
    is_email_verified = models.BooleanField(default=False)
    meta = models.JSONField(default=dict, blank=True)
    source = models.CharField(max_length=16, default="API")
    opt_in_signed = models.DateTimeField(null=True)

    class Meta(Record.Meta):
        unique_together = [("list", "email")]


class Field(Record):
    variable = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=255)


class Webhook(Record):
    url = models.URLField(max_length=2048)
    type = models.CharField(max_length=16, choices=[(t, t) for t in WEBHOOK_TYPES])
    is_auth_enabled = models.BooleanField(default=False)
    login = models.CharField(max_length=255, blank=True, default="")
    password = models.CharField(max_length=255, blank=True, default="")


class Sender(Record):
    full_name = models.CharField(max_length=255, blank=True, default="")
    from_email = models.EmailField(unique=True)
    reply_to_email = models.EmailField(blank=True, default="")
    is_verified = models.BooleanField(default=True)


class Message(Record):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    to = models.EmailField()
