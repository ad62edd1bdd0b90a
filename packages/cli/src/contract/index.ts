/**
 * The contract with programs: a zod schema of the output of each verb with `--json` and `--jsonl`, its output
 * with `--quiet`, and its exit codes. The schemas are strict: they allow no other fields. Shared shapes have
 * an `id`.
 *
 * @privateRemarks
 * These files import zod, each other, and the codes of `errors`. Only `tape schema` loads them.
 *
 * @module @tapedeck/cli/contract
 */

export { errorCodes } from '../errors/codes.ts';
export { errorDocument } from './error.ts';
export type { Form, VerbContract } from './form.ts';
export { type JsonSchema, jsonSchema } from './json-schema.ts';
export { contract } from './verbs.ts';
