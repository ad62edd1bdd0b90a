import type { SessionInfo } from '@tapedeck/tape';
import { commandLine } from '../escape.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const rename: Verb = defineVerb({
  command: 'rename <name> <new>',
  group: 'Change',
  summary: 'Give a session a new name, and show that as its title',
  detail:
    'The new name is an alias, and the title. The name that the session was created with goes on to find it; a name that an ' +
    'earlier rename gave, and that names the session here, is free again. Renaming a session to the name that it was created ' +
    'with takes the title away.',
  examples: [
    ['tape rename main release', 'Open main as release too, and show it so'],
    ['tape rename main main', 'Show it by its first name again'],
  ],
  arguments: { name: 'Session', new: 'Its new name' },
  run: async (args, { changing, answer, inHome }) =>
    await changing(async (store) => {
      const before = needSession(store, args.name);
      const { new: name } = args;
      const repeated = nameOf(before) === name && namesOf(before).includes(name);
      const ref = before.aliases.includes(args.name) ? args.name : before.id;
      const info = store.sessions.update(ref, { name });
      const { session, id, aliases, title } = info;
      await answer({
        json: { session, id, aliases, ...(title !== undefined && { title }), repeated },
        quiet: session,
        human: repeated
          ? `${session} has the name ${name} already: nothing to do`
          : inHome(
              `Renamed ${nameOf(before)} to ${name} (undo with: ${commandLine('rename', [name, nameOf(before)])})`,
            ),
      });
      return 0;
    }),
});

/** The name that a session is shown by: the one of the last rename, else its own. */
function nameOf({ session, title, aliases }: SessionInfo): string {
  return title !== undefined && aliases.includes(title) ? title : session;
}

function namesOf({ session, aliases }: SessionInfo): readonly string[] {
  return [session, ...aliases];
}
