/**
 * The verbs, one file for each or for a pair that belongs together: grammar, options, examples, and what the verb does.
 * This file lists them in the order of the help, and loads those that are needed. A verb imports `demo`, `mcp`, `ui`, `chat`, `session` and
 * what lies below, and no other verb.
 */

import type { Verb } from './verb.ts';

/** Loads each verb by its name, in the order of `tape --help`. */
const loaders: Readonly<Record<string, () => Promise<Verb>>> = {
  init: async () => (await import('./init.ts')).init,
  new: async () => (await import('./new.ts')).newSession,
  import: async () => (await import('./import.ts')).importVerb,
  demo: async () => (await import('./demo.ts')).demo,
  config: async () => (await import('./config.ts')).config,
  run: async () => (await import('./run.ts')).run,
  chat: async () => (await import('./chat.ts')).chat,
  send: async () => (await import('./send.ts')).send,
  delegate: async () => (await import('./delegate.ts')).delegate,
  worker: async () => (await import('./worker.ts')).worker,
  wait: async () => (await import('./wait.ts')).wait,
  abort: async () => (await import('./abort.ts')).abort,
  approve: async () => (await import('./approve.ts')).approve,
  recover: async () => (await import('./recover.ts')).recover,
  overview: async () => (await import('./overview.ts')).overview,
  sessions: async () => (await import('./sessions.ts')).sessions,
  children: async () => (await import('./sessions.ts')).children,
  status: async () => (await import('./status.ts')).status,
  log: async () => (await import('./log.ts')).log,
  logs: async () => (await import('./logs.ts')).logs,
  show: async () => (await import('./show.ts')).show,
  view: async () => (await import('./view.ts')).view,
  search: async () => (await import('./search.ts')).search,
  lineage: async () => (await import('./lineage.ts')).lineage,
  graph: async () => (await import('./graph.ts')).graph,
  diff: async () => (await import('./diff.ts')).diff,
  trace: async () => (await import('./trace.ts')).trace,
  blame: async () => (await import('./blame.ts')).blame,
  permissions: async () => (await import('./permissions.ts')).permissions,
  usage: async () => (await import('./usage.ts')).usage,
  ui: async () => (await import('./ui.ts')).ui,
  append: async () => (await import('./append.ts')).append,
  anchor: async () => (await import('./anchor.ts')).anchor,
  handoff: async () => (await import('./anchor.ts')).handoff,
  rewind: async () => (await import('./rewind.ts')).rewind,
  undo: async () => (await import('./undo.ts')).undo,
  compact: async () => (await import('./compact.ts')).compact,
  alias: async () => (await import('./alias.ts')).alias,
  unalias: async () => (await import('./alias.ts')).unalias,
  link: async () => (await import('./link.ts')).link,
  rename: async () => (await import('./rename.ts')).rename,
  resolve: async () => (await import('./resolve.ts')).resolve,
  identity: async () => (await import('./identity.ts')).identity,
  archive: async () => (await import('./archive.ts')).archive,
  delete: async () => (await import('./delete.ts')).deleteVerb,
  fork: async () => (await import('./fork.ts')).fork,
  branch: async () => (await import('./branch.ts')).branch,
  merge: async () => (await import('./merge.ts')).merge,
  discard: async () => (await import('./discard.ts')).discard,
  check: async () => (await import('./check.ts')).check,
  verify: async () => (await import('./verify.ts')).verify,
  audit: async () => (await import('./audit.ts')).audit,
  doctor: async () => (await import('./doctor.ts')).doctor,
  attest: async () => (await import('./attest.ts')).attest,
  redact: async () => (await import('./redact.ts')).redact,
  purge: async () => (await import('./purge.ts')).purge,
  trust: async () => (await import('./trust.ts')).trust,
  export: async () => (await import('./export.ts')).exportVerb,
  copy: async () => (await import('./copy.ts')).copy,
  remote: async () => (await import('./remote.ts')).remote,
  push: async () => (await import('./push.ts')).push,
  pull: async () => (await import('./pull.ts')).pull,
  clone: async () => (await import('./clone.ts')).clone,
  backup: async () => (await import('./backup.ts')).backup,
  restore: async () => (await import('./restore.ts')).restore,
  mcp: async () => (await import('./mcp.ts')).mcp,
  completion: async () => (await import('./completion.ts')).completion,
  schema: async () => (await import('./schema.ts')).schema,
  raw: async () => (await import('./raw.ts')).raw,
};

/** The other names of verbs, as they declare them. */
const others: Readonly<Record<string, string>> = { ls: 'sessions', unrewind: 'undo' };

/** All words that name a verb. */
export const verbWords: readonly string[] = [...Object.keys(loaders), ...Object.keys(others)];

/** The name of the verb that a word names; undefined when there is none. */
export function verbName(word: string): string | undefined {
  const name = Object.hasOwn(others, word) ? others[word] : word;
  return name !== undefined && Object.hasOwn(loaders, name) ? name : undefined;
}

/** Loads the verb that a word names; undefined when there is none. */
export async function verbNamed(word: string): Promise<Verb | undefined> {
  const name = verbName(word);
  return name === undefined ? undefined : await loaders[name]?.();
}

/** Loads all verbs, in the order of `tape --help`. */
export async function allVerbs(): Promise<readonly Verb[]> {
  return await Promise.all(Object.values(loaders).map((load) => load()));
}
