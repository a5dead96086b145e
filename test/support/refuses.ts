import { expect } from 'vitest';

/** The call is refused with this code. */
export const refuses = (call: Promise<unknown>, code: string) => expect(call).rejects.toMatchObject({ code });
