/** The sizes a table is held to. They bound memory: nothing of a file is kept beyond them. */

/** A cell, in bytes of UTF-8. */
export const maxCellBytes = 1024 * 1024;
/** A row, in bytes of UTF-8: a batch of an import is at most 4 MiB, so a longer row could not be put. */
export const maxRowBytes = 4 * 1024 * 1024;
/** Columns of a header. More is a matrix or a wrong delimiter, not a list of people. */
export const maxColumns = 2_000;
/** What is looked at to tell encoding and delimiter. */
export const sniffBytes = 256 * 1024;
