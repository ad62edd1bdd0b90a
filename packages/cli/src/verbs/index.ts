/**
 * The verbs, one file for each or for a pair that belongs together: grammar, options, examples, and what the verb does.
 * This file lists them in the order of the help. A verb imports `demo`, `session` and what lies below, and no other
 * verb.
 */

import { abort } from './abort.ts';
import { alias, unalias } from './alias.ts';
import { anchor, handoff } from './anchor.ts';
import { append } from './append.ts';
import { approve } from './approve.ts';
import { archive } from './archive.ts';
import { attest } from './attest.ts';
import { audit } from './audit.ts';
import { backup } from './backup.ts';
import { branch } from './branch.ts';
import { check } from './check.ts';
import { compact } from './compact.ts';
import { delegate } from './delegate.ts';
import { demo } from './demo.ts';
import { diff } from './diff.ts';
import { discard } from './discard.ts';
import { doctor } from './doctor.ts';
import { fork } from './fork.ts';
import { graph, lineage } from './graph.ts';
import { importVerb } from './import.ts';
import { init } from './init.ts';
import { log } from './log.ts';
import { merge } from './merge.ts';
import { newSession } from './new.ts';
import { raw } from './raw.ts';
import { recover } from './recover.ts';
import { redact } from './redact.ts';
import { restore } from './restore.ts';
import { rewind } from './rewind.ts';
import { run } from './run.ts';
import { schema } from './schema.ts';
import { search } from './search.ts';
import { send } from './send.ts';
import { children, sessions } from './sessions.ts';
import { show } from './show.ts';
import { status } from './status.ts';
import { trace } from './trace.ts';
import { trust } from './trust.ts';
import { undo } from './undo.ts';
import { usage } from './usage.ts';
import type { Verb } from './verb.ts';
import { verify } from './verify.ts';
import { view } from './view.ts';
import { wait } from './wait.ts';

/** All verbs, in the order of `tape --help`. */
export const verbs: readonly Verb[] = [
  init,
  newSession,
  importVerb,
  run,
  send,
  delegate,
  demo,
  sessions,
  status,
  log,
  show,
  view,
  search,
  children,
  lineage,
  graph,
  diff,
  trace,
  usage,
  append,
  anchor,
  handoff,
  fork,
  branch,
  merge,
  discard,
  rewind,
  undo,
  compact,
  abort,
  wait,
  approve,
  alias,
  unalias,
  archive,
  check,
  verify,
  audit,
  doctor,
  recover,
  attest,
  backup,
  restore,
  redact,
  trust,
  schema,
  raw,
];
