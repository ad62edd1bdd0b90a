import { isDeleted, isSummarizer, lifecycleWord } from '@tapedeck/tape/internal';
import { commandLine } from '../escape.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const deleteVerb: Verb = defineVerb({
  command: 'delete <name>',
  group: 'Change',
  summary: 'Delete a session: only its ULID finds it, and its names are free',
  detail:
    'A deleted session is as an archived one, and in no list but `sessions --deleted`; a graph has it as its ULID, where others ' +
    'were forked from it. Its name and its aliases can be given to ' +
    'others; undo with its ULID brings it back with all of them, or not at all. Nothing is erased, and its children and what ' +
    'they inherit stay: purge erases.',
  examples: [
    ['tape delete main', 'Delete main, and print the command that brings it back'],
    ['tape sessions --deleted', 'List deleted sessions, with their ULIDs'],
  ],
  arguments: { name: 'Session' },
  run: async ({ name }, { changing, answer, status, inHome }) =>
    await changing(async (store) => {
      const before = needSession(store, name);
      const repeated = isDeleted(before);
      const freed = repeated ? [] : [before.session, ...before.aliases];
      const { id, session, lifecycle } = repeated
        ? before
        : store.sessions.update(before.id, { lifecycle: 'destroyed' });
      const open = store.sessions
        .list({ parent: id, all: true })
        .filter(
          (child) => child.lifecycle === 'active' && child.delivery === undefined && !isSummarizer(child),
        )
        .map((child) => child.session);
      if (open.length > 0 && !repeated) status(`Its open children stay: ${open.join(', ')}`);
      await answer({
        json: { session, id, lifecycle, names: freed, repeated, open_children: open },
        quiet: id,
        human: repeated
          ? `${id} is ${lifecycleWord(lifecycle)} already: nothing to do`
          : inHome(`Deleted ${session} (undo with: ${commandLine('undo', [id])})`),
      });
      return 0;
    }),
});
