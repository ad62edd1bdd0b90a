import { nearNames } from '@tapedeck/tape/store';
import { SessionError } from './errors.ts';

/** The names of all fields of an options type; the compiler refuses a missing and a surplus name. */
export type Fields<T> = Readonly<Record<keyof T, true>>;

/** Why options cannot be used: the first field that does not exist, with the nearest names; undefined when all do. */
export function fieldFault(
  options: object,
  known: Readonly<Record<string, true>>,
  act: string,
): SessionError | undefined {
  const field = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (field === undefined) return undefined;
  const near = nearNames(field, Object.keys(known));
  const hint = near.length === 0 ? '' : `; did you mean ${near.map((name) => `'${name}'`).join(' or ')}?`;
  return new SessionError('SESSION_BAD_INPUT', `cannot ${act}: there is no option '${field}'${hint}`, {
    data: { field, near },
  });
}

/**
 * Refuses options with a field that does not exist, which would otherwise be ignored.
 * @throws SESSION_BAD_INPUT; `data.field` names the field, `data.near` has the nearest names
 */
export function assertFields(options: object, known: Readonly<Record<string, true>>, act: string): void {
  const fault = fieldFault(options, known, act);
  if (fault !== undefined) throw fault;
}
