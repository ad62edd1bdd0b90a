import { nearNames } from './name.ts';

/**
 * All fields of an options type: `true`, or the texts that the field can be. The compiler refuses a missing and a
 * surplus name.
 */
export type Fields<T> = Readonly<{ [K in keyof T]-?: true | readonly Extract<T[K], string>[] }>;

/** `Fields` of any type. */
export type KnownFields = Readonly<Record<string, true | readonly string[]>>;

/** Why options cannot be used. */
export interface OptionFault {
  /** The field with the fault; absent when the options are no object. */
  readonly field?: string;
  /** The nearest names of the type, for a field that does not exist: at most three, nearest first. */
  readonly near: readonly string[];
  /** Says so, for an error message: `there is no option 'sinse'; did you mean 'since'?`. */
  readonly why: string;
}

/** Returns the first fault of options: a field that does not exist, or a text that a field cannot be. Pure. */
export function optionFault(options: unknown, known: KnownFields): OptionFault | undefined {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    return { near: [], why: 'the options must be an object' };
  for (const field in options) {
    const choices = Object.hasOwn(known, field) ? known[field] : undefined;
    if (choices === undefined) return unknownField(field, known);
    const value: unknown = Reflect.get(options, field);
    // A function stands for a choice of the caller's own.
    if (choices === true || value === undefined || typeof value === 'function') continue;
    if (typeof value === 'string' && choices.includes(value)) continue;
    return { field, near: [], why: `${field} must be ${choices.map((text) => `'${text}'`).join(' or ')}` };
  }
  return undefined;
}

function unknownField(field: string, known: KnownFields): OptionFault {
  const near = nearNames(field, Object.keys(known));
  const hint = near.length === 0 ? '' : `; did you mean ${near.map((name) => `'${name}'`).join(' or ')}?`;
  return { field, near, why: `there is no option '${field}'${hint}` };
}
