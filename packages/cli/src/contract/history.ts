import { z } from 'zod';
import { type Contracts, count, document, names, noSession, printed, range, session, text } from './form.ts';
import { Run } from './run.ts';

const rewound = z.strictObject({
  session,
  seq: count('position of the rewind'),
  to: count('the session reads as if it ended here'),
  hidden: count('number of entries that are no longer visible'),
  shown: count('number of entries that are visible again'),
  snapped_from: count('requested end, when it lay inside a batch of tool calls').optional(),
  forks: names('live children whose fork point is hidden now'),
});

const toMessage = rewound.extend({
  message: count('position of the message that it returned to'),
  text: text('text of that message'),
  snapshot_id: text('id that the hook `onMessage` gave for it').optional(),
  resent: count('position of the message sent again, with `--mode resend`').optional(),
  warnings: names('failures of hooks; the rewind is done').optional(),
});

/** Verbs that change which entries of a session are visible. */
export const historyVerbs: Contracts = {
  rewind: {
    json: [
      document(toMessage),
      document(
        toMessage.extend({ run: Run.describe('run that answers the message') }),
        'with `--mode resend --model`',
      ),
    ],
    quiet: '`SESSION@SEQ` of the rewind, or the answer',
    exits: {
      1: 'the run that it started failed, or stopped early',
      2: 'no point was named, or no visible message of a user; the model or a configuration cannot be used, or is not trusted',
      3: 'no such session, anchor or position',
      4: 'the session runs, or is archived',
      6: 'a call of the run that it started waits for an answer',
      130: 'interrupted; the answer so far is on the tape',
    },
  },
  undo: {
    json: [
      document(
        rewound.extend({
          undone: count('position of the entry that was undone'),
          act: z
            .enum(['rewind', 'compaction', 'prune', 'anchor', 'handoff', 'merge'])
            .describe('what it was; an earlier undo is a rewind'),
        }),
      ),
      ...printed(
        {
          session,
          id: text('ULID'),
          lifecycle: z.enum(['active', 'archived']).describe('state now, and before'),
          names: names('its names, which find it again'),
        },
        'for a deleted session',
      ),
    ],
    quiet: '`SESSION@SEQ` of the rewind that undoes it, or the name of a session that is back',
    exits: {
      2: 'the entry at the point cannot be undone, or a rewind hides it',
      3: 'no such session, anchor or position',
      4: 'there is nothing to undo, or a message follows what is no rewind; the session runs, or is archived; or something else has a name of a deleted session',
    },
  },
  compact: {
    json: [
      ...printed({
        session,
        seq: count(
          'position of the summary, or with `--prune` of the event; null when nothing was done',
        ).nullable(),
        range: range
          .nullable()
          .describe('positions that the summary replaces, or the first and last pruned output'),
        tokens_before: z.number().nullable().describe('estimated size of the view before'),
        tokens_after: z.number().nullable().describe('estimated size of the view now'),
        summarizer: text('name of the session that wrote the summary').optional(),
        missing_sections: names('required sections that the summary lacks').optional(),
      }),
    ],
    quiet: '`SESSION@SEQ`, or nothing',
    exits: {
      1: 'no summary could be made, or no smaller one',
      2: 'no model was given',
      ...noSession,
      4: 'another process is writing the session, or it is archived',
      130: 'interrupted; no summary was written',
    },
  },
};
