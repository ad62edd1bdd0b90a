import { nearNames } from './name.ts';

/** The names of all fields of an options type; the compiler refuses a missing and a surplus name. */
export type Fields<T> = Readonly<Record<keyof T, true>>;

/** A field that an options object has and its type does not. */
export interface UnknownField {
  readonly field: string;
  /** The nearest names of the type: at most three, nearest first. */
  readonly near: readonly string[];
  /** Says so, for an error message: `there is no option 'sinse'; did you mean 'since'?`. */
  readonly why: string;
}

/** Returns the first field of an options object that does not exist, or undefined when all do. */
export function unknownField(
  options: object,
  known: Readonly<Record<string, true>>,
): UnknownField | undefined {
  for (const field in options) {
    if (known[field] === true) continue;
    const near = nearNames(field, Object.keys(known));
    const hint = near.length === 0 ? '' : `; did you mean ${near.map((name) => `'${name}'`).join(' or ')}?`;
    return { field, near, why: `there is no option '${field}'${hint}` };
  }
  return undefined;
}
