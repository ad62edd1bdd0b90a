import { entryJson, entryPage } from '../output/entry.ts';
import { sessionJson } from '../output/session.ts';
import { needSession, readPlace } from '../place.ts';
import { defineVerb, type Verb } from '../verb.ts';

export const show: Verb = defineVerb({
  command: 'show <place>',
  group: 'Look',
  summary: 'Show one entry in full, or what is known of a session',
  examples: [
    ['tape show main@42', 'One entry'],
    ['tape show main@task-start', 'An anchor with its state'],
    ['tape show main', 'The session'],
  ],
  options: (y) =>
    y.positional('place', { type: 'string', demandOption: true, describe: 'SESSION@POINT, or SESSION' }),
  run: async ({ place }, { reading, answer }) =>
    await reading(async (store) => {
      const { session, point } = readPlace(store, place);
      const info = needSession(store, session);
      if (point === undefined) {
        const json = {
          ...sessionJson(info),
          tape: info.tape,
          base: info.base,
          floor: info.floor,
          settled: info.settled,
          hash: info.headHash,
        };
        const rows = Object.entries(json).map(([field, value]) => `${field.padEnd(11)} ${String(value)}`);
        await answer({ json, quiet: info.id, human: rows.join('\n') });
        return 0;
      }
      const seq = store.resolve(info.id, point);
      for (const entry of store.read(info.id, { from: seq, to: seq }))
        await answer({ json: entryJson(entry), quiet: entry.hash, human: entryPage(entry) });
      return 0;
    }),
});
