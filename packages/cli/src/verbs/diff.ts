import { diffJson, diffText, placeName } from '../output/diff.ts';
import { textDiff } from '../output/text-diff.ts';
import { needSession, readPlace } from '../session/place.ts';
import { paperOf } from '../transcript/page.ts';
import { defineVerb, type Verb } from './verb.ts';

export const diff: Verb = defineVerb({
  command: 'diff <a> <b>',
  group: 'Look',
  paged: true,
  summary: 'Compare two sessions, or a session at two points',
  detail:
    'Finds the last common position, by lineage and without rewound entries. For each side it shows what follows: messages, tool ' +
    'calls, files that tools declare or that a worktree changed, and keys of anchor states. Then it compares the last answers. ' +
    'Of a side with more than 20,000 entries it reads the newest 20,000; --all reads all.',
  examples: [
    ['tape diff main fix', 'Compare two sessions, such as a session and its fork'],
    ['tape diff main@40 main', 'Show what followed main@40'],
    ['tape diff main fix --stat', 'Show counts and names alone'],
  ],
  arguments: { a: 'SESSION or SESSION@POINT', b: 'SESSION or SESSION@POINT' },
  options: {
    stat: { type: 'boolean', describe: 'Show counts and names, no texts' },
    n: { type: 'number', default: 20, describe: 'Show the last N messages of each side' },
    all: { type: 'boolean', describe: 'Read all entries of both sides, however long it takes' },
  },
  run: async (args, context) => {
    const { io, reading, answer } = context;
    io.saveMemory();
    const { diffSessions } = await import('@tapedeck/runtime');
    return await reading(async (store) => {
      const [one, other] = [args.a, args.b].map((text) => {
        const { session, point: at } = readPlace(store, text);
        return { session: needSession(store, session).id, ...(at !== undefined && { at }) };
      });
      if (one === undefined || other === undefined) throw new TypeError('two places were given');
      const found = await diffSessions(store, one, other, {
        messages: args.n,
        ...(args.all === true && { entries: Number.POSITIVE_INFINITY }),
      });
      const { base, a, b } = found;
      const stat = args.stat === true;
      const patch =
        stat || a.answer === undefined || b.answer === undefined
          ? undefined
          : await textDiff(
              { label: placeName({ session: a.session, at: a.answer.seq }), text: a.answer.text },
              { label: placeName({ session: b.session, at: b.answer.seq }), text: b.answer.text },
            );
      const detail = { stat, answers: patch ?? null };
      await answer({
        json: diffJson(found, detail),
        quiet: base === undefined ? '' : `${base.session}@${base.seq}`,
        human: diffText(found, {
          ...detail,
          ...paperOf(context),
          width: io.columns,
          isTerminal: io.isTerminal,
        }),
        isStyled: true,
      });
      return 0;
    });
  },
});
