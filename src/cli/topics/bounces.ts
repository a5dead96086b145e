/** `mailctl help bounces`. */

/** Bounces: their meaning, their way into the database, and their effect on the message and its address. */
export const bounces = `
A mail may be refused at once, in the talk with the mail server, or come back
later as a mail of its own: a bounce.

  hard       an address code, 5.1.1 and its like; at once also a plain 550 that
             says "no such user": the message is bounced, its address is
             suppressed (HARDBOUNCED) and gets no mail at all, and its
             subscribers are inactive in all lists
  sender     a refusal of the sender: relaying, block lists, authentication.
             The message is deferred, nothing is counted, and five in a row
             pause the queue
  soft       any other refusal: the message is failed, the address stays. Five
             messages in a row over a week or more suppress it for bulk mail
             (SOFTBOUNCED)
  complaint  a report of abuse (ARF): the address is suppressed (COMPLAINED)
             and gets no mail at all

One table judges replies and mails that came back. Words about rate, volume,
reputation, policy or size make an address code soft, and so does a report
that is known by its Message-ID alone, where bounces come back to signed
return paths. An address that only the returned message names is noted and
changes nothing. mailctl engine bounces explain FILE says what a
mail means, and by which rule.

For bounces to find their message, each gets a signed return path of its own
(VERP), bounces+TOKEN@example.com. Where that domain has other mail too, give
bounces one of their own.

  mailctl engine init --bounce-address bounces@example.com

Then they are taken in by one of three ways:

1. By SMTP, where the MX of that domain, or your mail server, hands them on:

     mailctl serve --bounce-smtp 0.0.0.0:25

   It takes signed return paths only: behind ten refused recipients it ends
   a connection with 421, and logs refusals of one network once a minute.

   With Postfix in front --bounce-smtp 127.0.0.1:2526 is enough. main.cf, and
   /etc/postfix/transport (then postmap):

     relay_domains = example.com
     transport_maps = hash:/etc/postfix/transport

     example.com  smtp:[127.0.0.1]:2526

2. By a pipe. With Postfix main.cf as above, "example.com  bounces:" as the
transport, and (main.cf, master.cf):

     recipient_delimiter = +
     bounces_destination_recipient_limit = 1

     bounces unix - n n - - pipe flags=DROX user=mailctl
       argv=/usr/bin/mailctl --db /var/lib/mailctl/mailctl.db
         engine bounces ingest -

   Exit 75 is for trouble with the database: the mail server then brings the
   mail again.

3. From files, a Maildir, an mbox or a folder; what was read of a Maildir goes
from new to cur:

     mailctl engine bounces ingest ~/Maildir

A mail is counted once, by whichever way it comes. mailctl messages get ID
shows what was reported of a message, mailctl suppressions list who gets no
mail; mailctl suppressions remove ADDRESS lifts it.
`;
