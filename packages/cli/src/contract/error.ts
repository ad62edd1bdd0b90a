import { z } from 'zod';
import { errorCodes } from '../errors/codes.ts';
import { object, shape, text } from './form.ts';

/** The error that any verb prints on stderr, on one line, when it fails with `--json` or `--jsonl`. */
export const errorDocument: z.ZodObject = shape('Error', 'The error that a failing verb prints on stderr.', {
  error: object('why the command failed', {
    code: z.enum(Object.keys(errorCodes)).describe('stable: branch on it, or on the exit code'),
    message: text('what could not be done, to what, and why; its words may change'),
    hint: text('the next command, where it is known').optional(),
    data: z.record(z.string(), z.unknown()).describe('facts of the error, such as `session` and `near`'),
  }),
});
