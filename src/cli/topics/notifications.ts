/** `mailctl help notifications`. */

/** Webhooks: their notifications, how these are signed, repeated and received. */
export const notifications = `
A webhook is a URL that is called when something happens to a message:

  mailctl webhooks create --url https://hooks.example.com/in --type HARDBOUNCED

The types are OPENED, REDIRECTED (a link was followed), UNSUBSCRIBED,
HARDBOUNCED and SOFTBOUNCED; one webhook is for one of them. A call is a POST
of JSON:

  {"id", "type", "date", "test",
   "message": {"id", "to", "from", "subject", "tag", "campaign_unique_id"},
   "data": {"url", "ip", "user_agent", "machine", "smtp_code", "diagnostic"}}

Signature: headers webhook-id, webhook-timestamp and webhook-signature, as
Standard Webhooks has them. One secret (whsec_…) signs for the whole database:
mailctl webhooks secret -o name prints it, --rotate makes a new one; the old
one signs too for 24 hours more, unless another new one is made meanwhile.
Basic auth is sent as well where the webhook has it.

Schedule: 2xx is success. Anything else, a redirect too, is tried again: at
once, after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 hours, each within 15
s, always with the same webhook-id, by which a receiver knows a repetition. 410
stops the webhook until it is changed or replayed.

mailctl serve and mailctl worker send them. What became of each, for 30 days,
and once more:

  mailctl webhooks deliveries 3 --state failed
  mailctl webhooks replay 3 --failed

To try a target: mailctl webhooks test 3. Addresses of this machine and of
private networks are refused unless mailctl engine settings set
allow_private_webhooks true.

In CI, listen makes a temporary webhook, checks the signature, prints the first
notification and ends; 12 when none came:

  mailctl webhooks listen --register --type HARDBOUNCED --once --wait 2m -o json
`;
