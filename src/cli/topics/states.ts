/** `mailctl help states`. */

/** The states of a message, their meaning and the possible actions. */
export const states = `
The states of a message, as mailctl messages list shows them. Final are
bounced, failed, uncertain and canceled, and sent, as long as no bounce comes
back for it.

  staged     of a campaign that is not released: mailctl campaigns resume NAME
             goes on, mailctl campaigns cancel NAME drops it
  queued     waits to be sent, by mailctl worker or mailctl serve; mailctl
             engine queue stats says what holds it up
  leased     in a worker's hands at the moment; comes back by itself when that
             worker dies
  deferred   put off by a mail server (4xx, or a refusal of the sender) or by
             the network; tried again
             after 5 minutes, doubling to 4 hours, for 4 days; mailctl messages
             retry ID makes it due now, for the next worker or server
  sent       the next mail server has taken it; that is not the inbox of
             the recipient yet
  bounced    the address is no good (5.1.1 and its like): it is suppressed, and
             its subscribers are inactive
  failed     refused for another reason, put off for 4 days, or not to be
             composed: too large with its values, or a worker ended three times
             on it; the address stays: mend the cause and send it anew
  uncertain  handed over, but the answer was lost: it may have arrived. It is
             sent again only when you say so, and may then arrive twice:
             mailctl messages retry ID
  canceled   not sent: by messages cancel or campaigns cancel, or because
             its address was suppressed or its subscriber inactive or deleted by
             then

mailctl messages get ID shows every attempt, what a bounce reported, what holds
it back, and as LAST REPLY why it was not sent. mailctl messages list --status
deferred lists one state. Staged, queued and deferred ones can be canceled.
`;
