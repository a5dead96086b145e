/** By which clock the times of the queue were written. Never edited: what comes later is a later migration. */
export const clockKept = {
	version: 10,
	name: 'clock',
	sql: `
-- One row. "ahead" is the machine's clock less its steady one, which begins anew with each boot. "step" is how far the
-- clock was set last, and "stepped_at" when, by the clock after it; both NULL while it never was.
CREATE TABLE clock (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	boot TEXT NOT NULL,
	ahead INTEGER NOT NULL,
	step INTEGER,
	stepped_at INTEGER
) STRICT;
`,
} as const;
