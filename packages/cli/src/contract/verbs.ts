import { z } from 'zod';
import { entryVerbs } from './entry.ts';
import { forkVerbs } from './fork.ts';
import { type Contracts, type Form, mark, type VerbContract } from './form.ts';
import { historyVerbs } from './history.ts';
import { homeVerbs } from './home.ts';
import { importVerbs } from './imports.ts';
import { remoteVerbs } from './remotes.ts';
import { runVerbs } from './run.ts';
import { sessionVerbs } from './session.ts';
import { usageVerbs } from './usage.ts';

const own: Contracts = {
  ...homeVerbs,
  ...importVerbs,
  ...remoteVerbs,
  ...sessionVerbs,
  ...runVerbs,
  ...entryVerbs,
  ...forkVerbs,
  ...historyVerbs,
  ...usageVerbs,
};

/** The verbs that write, and so bring the graph file up to date. */
const writing: readonly string[] = [
  ...[
    'init',
    'new',
    'import',
    'run',
    'send',
    'delegate',
    'append',
    'anchor',
    'handoff',
    'fork',
    'branch',
    'merge',
  ],
  ...[
    'discard',
    'rewind',
    'undo',
    'compact',
    'abort',
    'approve',
    'rename',
    'resolve',
    'identity',
    'archive',
    'delete',
    'recover',
    'redact',
  ],
  ...['purge', 'raw', 'doctor', 'check', 'config', 'push', 'pull', 'clone'],
];

/** What a document of a verb that writes says about the graph file. */
const aboutGraph = {
  graph_lagging: mark('the graph file lacks lines, because it cannot be written now').optional(),
  graph_diverged: mark(
    'the graph file had other lines than the database: it was set aside, and written anew; with `graph_lagging`, it could not be set aside, or the new one not be written',
  ).optional(),
};

function withGraph({ json, ...rest }: VerbContract): VerbContract {
  const extended = ({ schema, ...form }: Form): Form => ({
    ...form,
    schema: form.prints === 'document' && schema instanceof z.ZodObject ? schema.extend(aboutGraph) : schema,
  });
  return { ...rest, json: json.map(extended) };
}

/** The contract of each verb, by its name. */
export const contract: Contracts = Object.fromEntries(
  Object.entries(own).map(([verb, of]) => [verb, writing.includes(verb) ? withGraph(of) : of]),
);
