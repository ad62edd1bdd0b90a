import type { Topic } from '../page.ts';

export const points: Topic = {
  name: 'points',
  summary: 'How to name a session, and a position in it',
  page: {
    sections: [
      {
        blocks: [
          'An argument that takes a session accepts each of these:',
          {
            terms: [
              ['`NAME`', 'The name of a session, or an alias'],
              ['`01J9Z0A3…`', 'Its ULID, which `tape show NAME --json` prints'],
              [
                '`PREFIX`',
                'The beginning of a name, an alias or a ULID that no other session has, also of one character; of a ULID in either case',
              ],
              [
                '`main-…d6c46`',
                'The beginning and the end of a name, as a table cuts it (or with three dots)',
              ],
              ['`@{-1}`', 'The session that you named last in this home; `@{-2}` is the one before'],
              ['`NAME^`', 'The parent of a fork; `NAME^^` is the parent of the parent'],
            ],
          },
          'A whole name comes before a prefix, and the prefix of a name before that of a ULID. The name that a deleted ' +
            'session had is no prefix. An error lists the sessions that an ambiguous prefix could mean.',
          '`run`, `chat`, `send` and `append` create a session that does not exist, and take no prefix, but that of a ULID from ' +
            'six characters on. They ask about a name that is the beginning of another (`mai` of `main`), or differs from one by a ' +
            'letter more, less or other, or by two swapped (`mian`), in a word of at least four letters. Elsewhere than on a ' +
            'terminal they refuse it. `--new` creates it. Names that differ by a number never count: `main2`, `agent-1`, `agent`.',
        ],
      },
      {
        title: 'Points',
        blocks: [
          'Behind a session, `@` names one of its entries. A position counts from 1, which is the start of the session. ' +
            '`log` ends at a point; `show`, `view`, `diff`, `trace`, `fork`, `branch`, `rewind`, `undo` and `redact` take one, ' +
            'too. The other verbs take a whole session, and refuse a point.',
          {
            terms: [
              ['`NAME@42`', 'The entry at position 42'],
              ['`NAME@head`', 'The last entry'],
              ['`NAME@-3`', 'Three positions before the last'],
              ['`NAME@task-start`', 'The last anchor of that name; `@task-start~1` is the one before'],
              ['`NAME@{1 hour ago}`', 'The last entry that was written by then'],
              [
                '`NAME@{2026-11-21T10:00}`',
                'The same, in UTC or with an offset; also `@{yesterday}`, `@{3d}`, `@{2 years ago}`',
              ],
            ],
          },
          'For `log`, `NAME@A..B` is the range from one point to another, both included: `main@3..5`, `main@task-start..head`, ' +
            '`main@40..`.',
          'A session name may contain `@`: the longest name that exists wins, and the rest is the point. Quote what ' +
            'contains a blank or a brace: `tape show "main@{1 hour ago}"`.',
        ],
      },
    ],
  },
};
