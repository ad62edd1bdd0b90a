/**
 * What programs may rely on: a zod schema for everything that a verb prints with `--json` and `--jsonl`,
 * beside what `--quiet` prints and what its exit codes mean. The schemas are strict: they allow no field that
 * they do not name. Shapes that verbs share have an `id`. These files import zod, each other, and the codes
 * of `errors`. Only `tape schema` loads them, when it runs.
 */

export { errorCodes } from '../errors/codes.ts';
export { errorDocument } from './error.ts';
export type { Form, VerbContract } from './form.ts';
export { type JsonSchema, jsonSchema } from './json-schema.ts';
export { contract } from './verbs.ts';
