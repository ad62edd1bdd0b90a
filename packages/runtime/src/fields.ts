import { type Fields, type KnownFields, optionFault } from '@tapedeck/tape/store';
import { SessionError } from './errors.ts';

export type { Fields, KnownFields };

/** Why options cannot be used: the first fault, with the nearest names; undefined without one. */
export function fieldFault(options: object, known: KnownFields, act: string): SessionError | undefined {
  const fault = optionFault(options, known);
  if (fault === undefined) return undefined;
  const { why, ...data } = fault;
  return new SessionError('SESSION_BAD_INPUT', `cannot ${act}: ${why}`, { data });
}

/**
 * Refuses options with a field that does not exist, or a text that a field cannot be; both would otherwise be
 * ignored.
 * @throws SESSION_BAD_INPUT; `data.field` names the field, `data.near` has the nearest names
 */
export function assertFields(options: object, known: KnownFields, act: string): void {
  const fault = fieldFault(options, known, act);
  if (fault !== undefined) throw fault;
}
