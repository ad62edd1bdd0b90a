import { z } from 'zod';

/** One form of the output of a verb with `--json` or `--jsonl`. */
export interface Form {
  /** The options or arguments that select it; the first form of a verb is its usual one. */
  readonly when?: string;
  /** One document on stdout, or one object on each line. */
  readonly prints: 'document' | 'lines';
  /** Schema of the document, or of each line. */
  readonly schema: z.ZodType;
}

/** The contract of a verb with programs, beside its options. */
export interface VerbContract {
  readonly json: readonly Form[];
  /** Output with `--quiet`. */
  readonly quiet: string;
  /** Exit codes other than 0, with their meaning for the verb. */
  readonly exits: Readonly<Record<number, string>>;
}

export type Contracts = Readonly<Record<string, VerbContract>>;

/** The fields of an object, by name. */
type Fields = Readonly<Record<string, z.ZodType>>;

/** The form that is one JSON document. */
export function document(schema: z.ZodType, when?: string): Form {
  return { prints: 'document', schema, ...(when !== undefined && { when }) };
}

/** The form that is one object, as a list of one. */
export function printed(fields: Fields, when?: string): readonly Form[] {
  return [document(z.strictObject(fields), when)];
}

/** The form that is one object on each line. */
export function lines(schema: z.ZodType, when = 'with `--jsonl`'): Form {
  return { prints: 'lines', schema, when };
}

/** Both forms of a list: an array with `--json`, lines with `--jsonl`. */
export function listed(schema: z.ZodType, when?: string): readonly Form[] {
  const prefix = when === undefined ? '' : `${when}, `;
  return [document(z.array(schema), when), lines(schema, `${prefix}with \`--jsonl\``)];
}

/** An object that several verbs print, or that has objects of its own kind in it. */
export function shape(id: string, description: string, fields: Fields): z.ZodObject {
  return z.strictObject(fields).meta({ id, description });
}

export const object = (what: string, fields: Fields): z.ZodObject => z.strictObject(fields).describe(what);
export const listOf = (what: string, fields: Fields): z.ZodArray<z.ZodObject> =>
  z.array(z.strictObject(fields)).describe(what);
export const text = (what: string): z.ZodString => z.string().describe(what);
export const names = (what: string): z.ZodArray<z.ZodString> => z.array(z.string()).describe(what);
export const flag = (what: string): z.ZodBoolean => z.boolean().describe(what);
export const mark = (what: string): z.ZodLiteral<true> => z.literal(true).describe(what);
/** A position on a tape, or a number of things. */
export const count = (what: string): z.ZodInt => whole.describe(what);

/** How the graph file compares with the database, in the documents of verbs that answer from the database. */
export const graphStanding: Fields = {
  graph_lagging: mark('the graph file lacks lines, or cannot be read').optional(),
  graph_diverged: mark('the graph file has another line than the database').optional(),
};
export const graphDiverged = {
  5: 'the graph file differs from the database; the answer is whole, from the database',
} as const;

export const whole: z.ZodInt = z.int().min(0);
export const range: z.ZodTuple<[z.ZodInt, z.ZodInt], null> = z.tuple([whole, whole]);
export const repeated: z.ZodBoolean = flag('true when this was so before, and nothing was written');
export const logEmptied: z.ZodBoolean = flag(
  'false: others used the file, or the disk failed, and the file or its WAL still has the content; or the home is on a server, which keeps its own files',
);
export const dryRun: z.ZodLiteral<true> = mark('nothing was written');
export const session: z.ZodString = text('name of the session');
export const parent: z.ZodString = text('name of the parent');
export const kind: z.ZodString = text('see [format.md](format.md#entry-kinds)');
export const entryName: z.ZodOptional<z.ZodString> = text('name of an anchor or event').optional();

export const noSession = { 3: 'no such session' } as const;
export const noPoint = { 3: 'no such session, anchor or position, or no tape home' } as const;
export const busy = { 4: 'another process is writing the session' } as const;
