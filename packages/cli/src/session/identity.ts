import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { shellWord } from '../escape.ts';

/** The option for whose sessions are meant. */
export const personaOption = {
  type: 'string',
  takes: 'NAME',
  describe: 'Persona whose sessions are meant (default: that of the routes with such keys, else none)',
} as const;

/** That option in a command, if a persona is named. */
export function personaWords(persona: string | undefined): string {
  return persona === undefined ? '' : ` --persona ${shellWord(persona)}`;
}

/** How a session is referred to in a home: by its name, or by its id where that is of another realm. */
export function refOf({ base }: Pick<HomeStore, 'base'>, { session, id, tape }: SessionInfo): string {
  return tape.startsWith(`${base}:`) ? session : id;
}
