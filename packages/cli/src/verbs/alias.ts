import { TapeError } from '@tapedeck/tape';
import { quote } from '@tapedeck/tape/internal';
import { commandLine } from '../escape.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const alias: Verb = defineVerb({
  command: 'alias <name> <alias>',
  group: 'Change',
  summary: 'Give a session another name',
  detail:
    'Every verb then finds the session by this name too. The lineage records it, with the reason. To give another reason, take the alias away first (unalias).',
  examples: [
    [
      'tape alias dm:slack:u0142 dm:mom --reason "identity known"',
      'Open the session dm:slack:u0142 as dm:mom too',
    ],
  ],
  arguments: { name: 'Session', alias: 'Its other name' },
  options: { reason: { type: 'string', default: '', describe: 'Why, for the lineage' } },
  run: async ({ name, alias: other, reason }, { changing, answer, inHome }) =>
    await changing(async (store) => {
      const before = needSession(store, name);
      const repeated = before.aliases.includes(other);
      const info = store.sessions.update(before.id, { alias: { name: other, reason } });
      await answer({
        json: { session: info.session, aliases: info.aliases, repeated },
        quiet: info.session,
        human: repeated
          ? `${other} is an alias of ${info.session} already: nothing to do`
          : inHome(`${other} is an alias of ${info.session} (undo with: ${commandLine('unalias', [other])})`),
      });
      return 0;
    }),
});

export const unalias: Verb = defineVerb({
  command: 'unalias <alias>',
  group: 'Change',
  summary: 'Take an alias away from its session',
  detail: 'The name is free then. The lineage keeps both lines.',
  examples: [['tape unalias dm:mom', 'Free the name dm:mom']],
  arguments: { alias: 'Alias' },
  options: { reason: { type: 'string', default: '', describe: 'Why, for the lineage' } },
  run: async ({ alias: other, reason }, { changing, answer, inHome }) =>
    await changing(async (store) => {
      const { id, session, aliases } = needSession(store, other);
      if (!aliases.includes(other))
        throw new TapeError(
          'TAPE_EXISTS',
          `cannot take the alias ${quote(other)} from '${session}': it is not one of its aliases`,
          {
            data: { session, aliases },
          },
        );
      const info = store.sessions.update(id, { unalias: { name: other, reason } });
      await answer({
        json: { session: info.session, aliases: info.aliases },
        quiet: info.session,
        human: inHome(
          `${other} is no alias of ${info.session} any more (undo with: ${commandLine('alias', [info.session, other])})`,
        ),
      });
      return 0;
    }),
});
