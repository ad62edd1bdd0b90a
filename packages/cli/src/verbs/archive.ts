import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const archive: Verb = defineVerb({
  command: 'archive <name>',
  group: 'Change direction',
  summary: 'Put a session away: out of lists, still readable',
  detail:
    'Until it is taken back it is not run, sent to, compacted or rewound, nothing is delegated from it, and no child is merged ' +
    'into it. It can be read, forked and branched.',
  examples: [
    ['tape archive main', 'Put main away'],
    ['tape archive main --undo', 'Take it back'],
  ],
  options: (y) =>
    y
      .positional('name', { type: 'string', demandOption: true, describe: 'Session' })
      .option('undo', { type: 'boolean', describe: 'Make it active again' }),
  run: async ({ name, undo }, { changing, answer }) =>
    await changing(async (store) => {
      const wanted = undo === true ? 'active' : 'archived';
      const before = needSession(store, name);
      const info = store.setLifecycle(before.id, wanted);
      const done =
        undo === true
          ? `${info.name} is active again`
          : `Archived ${info.name} (take it back with: tape archive ${info.name} --undo)`;
      await answer({
        json: { session: info.name, lifecycle: info.lifecycle, repeated: before.lifecycle === wanted },
        quiet: info.name,
        human: before.lifecycle === wanted ? `${info.name} is ${wanted} already: nothing to do` : done,
      });
      return 0;
    }),
});
