import type { LinkReceipt } from '@tapedeck/tape/store';
import { UsageError } from '../errors/kinds.ts';
import { commandLine } from '../escape.ts';
import { linkJson } from '../output/session.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const link: Verb = defineVerb({
  command: 'link <name> [parent]',
  group: 'Change',
  summary: 'Put a session under another one in the tree',
  detail:
    'Corrects an edge that an import concluded (log --derived lists them), or relates sessions that were not forked from each ' +
    'other. Trees, usage --tree and children follow it. What the session inherits stays as it is, and so does where it is ' +
    'merged. Later imports leave it so.',
  examples: [
    ['tape link fix main', 'Put fix under main'],
    ['tape link fix --root', 'Make fix a root of its own'],
    ['tape link fix --undo', 'Put it back where it was before'],
  ],
  arguments: { name: 'Session', parent: 'Its parent in the tree' },
  options: {
    root: { type: 'boolean', describe: 'Give it no parent' },
    undo: { type: 'boolean', describe: 'Take its last link back; again, make it again' },
    reason: { type: 'string', describe: 'Why, for the lineage' },
  },
  conflicts: { root: ['undo'], undo: ['reason'] },
  run: async ({ name, parent, root = false, undo = false, reason }, { changing, answer, inHome }) => {
    const asked = [parent !== undefined, root, undo].filter((is) => is).length;
    if (asked !== 1)
      throw new UsageError(
        asked === 0
          ? `cannot link '${name}': no parent is named`
          : `cannot link '${name}': a parent, --root and --undo exclude each other`,
        { hint: `${commandLine('link', [name, 'PARENT'])}, or --root, or --undo` },
      );
    return await changing(async (store) => {
      const { id } = needSession(store, name);
      const to = parent === undefined ? null : needSession(store, parent).id;
      const linked = undo
        ? store.lineage.unlink(id)
        : store.lineage.link(id, to, reason === undefined ? {} : { evidence: reason });
      const { session, repeated } = linked;
      await answer({
        json: { session, id, ...linkJson(linked, linked.parent), repeated },
        quiet: session,
        human: repeated
          ? `${placeOf(linked)} already: nothing to do`
          : inHome(`${placeOf(linked)} now (undo with: ${commandLine('link', [session], ['--undo'])})`),
      });
      return 0;
    });
  },
});

function placeOf({ session, parent }: LinkReceipt): string {
  return parent === null ? `${session} is a root` : `${session} is under ${parent}`;
}
