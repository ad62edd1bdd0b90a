import { type Fields, unknownField } from '@tapedeck/tape/store';
import { SessionError } from './errors.ts';

export type { Fields };

/** Why options cannot be used: the first field that does not exist, with the nearest names; undefined when all do. */
export function fieldFault(
  options: object,
  known: Readonly<Record<string, true>>,
  act: string,
): SessionError | undefined {
  const unknown = unknownField(options, known);
  if (unknown === undefined) return undefined;
  const { field, near, why } = unknown;
  return new SessionError('SESSION_BAD_INPUT', `cannot ${act}: ${why}`, { data: { field, near } });
}

/**
 * Refuses options with a field that does not exist, which would otherwise be ignored.
 * @throws SESSION_BAD_INPUT; `data.field` names the field, `data.near` has the nearest names
 */
export function assertFields(options: object, known: Readonly<Record<string, true>>, act: string): void {
  const fault = fieldFault(options, known, act);
  if (fault !== undefined) throw fault;
}
