import { expect } from 'vitest';

export const refuses = (call: Promise<unknown>, code: string) => expect(call).rejects.toMatchObject({ code });
