import { assertKept } from '@tapedeck/tape/internal';
import { commandLine } from '../escape.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const archive: Verb = defineVerb({
  command: 'archive <name>',
  group: 'Change',
  summary: 'Archive a session: hide it from lists and refuse new work',
  detail:
    'An archived session can be read, forked and branched. It refuses runs, messages, delegation, compaction, rewinds and merges ' +
    'until --undo makes it active again. What was saved of an answer whose process died goes to the tape first.',
  examples: [
    ['tape archive main', 'Archive main'],
    ['tape archive main --undo', 'Make main active again'],
  ],
  arguments: { name: 'Session' },
  options: { undo: { type: 'boolean', describe: 'Make it active again' } },
  run: async ({ name, undo }, { changing, answer, inHome }) =>
    await changing(async (store) => {
      const wanted = undo === true ? 'active' : 'archived';
      const before = needSession(store, name);
      assertKept(
        { ...before, name: before.session, ulid: before.id },
        undo === true ? 'unarchive' : 'archive',
      );
      const info = store.sessions.update(before.id, { lifecycle: wanted });
      const done =
        undo === true
          ? `${info.session} is active again (undo with: ${commandLine('archive', [info.session])})`
          : `Archived ${info.session} (undo with: ${commandLine('archive', [info.session], ['--undo'])})`;
      await answer({
        json: { session: info.session, lifecycle: info.lifecycle, repeated: before.lifecycle === wanted },
        quiet: info.session,
        human:
          before.lifecycle === wanted ? `${info.session} is ${wanted} already: nothing to do` : inHome(done),
      });
      return 0;
    }),
});
