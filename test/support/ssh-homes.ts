import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { openTapeStore, type SqliteTapeStore } from '@tapedeck/tape';
import { openRemote, type Pulled, type Pushed, pull, push } from '@tapedeck/tape/remotes';
import { compileCache } from './compile-cache.ts';
import { tapeProgram } from './programs.ts';
import type { TempDir } from './temp-dir.ts';

/** The variables with which a home reaches others over ssh, or over what a test puts in its place. */
export interface SshEnv extends Readonly<Record<string, string | undefined>> {
  readonly TAPE_SSH_COMMAND: string;
  readonly TAPE_REMOTE_TAPE: string;
}

/** The command of `tape` at the other side: the build, which records no home. */
export const tapeThere: string = [
  'env',
  'HOME=/nonexistent',
  'TAPE_TRUST_HOME=1',
  `NODE_COMPILE_CACHE=${compileCache}`,
  process.execPath,
  tapeProgram,
].join(' ');

/** A program in the place of ssh that runs the command on this machine: without the words of an `ssh` before it. */
export const noSsh: string = 'for command; do :; done; exec sh -c "$command"; :';

export function sshEnv(ssh: string, tape: string = tapeThere): SshEnv {
  return { ...process.env, TAPE_SSH_COMMAND: ssh, TAPE_REMOTE_TAPE: tape };
}

/** An executable script for `sh`: its path. */
export function scriptIn(dir: TempDir, name: string, text: string): string {
  writeFileSync(dir.file(name), `#!/bin/sh\n${text}\n`);
  chmodSync(dir.file(name), 0o755);
  return dir.file(name);
}

/** Opens the store of a home that a test made. */
export function storeIn(home: string): SqliteTapeStore {
  return openTapeStore(`${home}/tape.db`, { secrets: [] });
}

/** The heads of all sessions: equal in homes that have the same. */
export function headsOf(store: SqliteTapeStore): readonly string[] {
  return store.sessions
    .list({ all: true })
    .map(({ session, id, head, headHash }) => `${session} ${id} ${head} ${headHash}`)
    .sort();
}

/** What `verify` finds, but for content that did not travel. */
export function damageIn(store: SqliteTapeStore): readonly string[] {
  return [...store.verify()].flatMap(({ code, message }) =>
    code === 'not-here' ? [] : [`${code}: ${message}`],
  );
}

/** The processes that a process started, and those that they did. */
export function descendantsOf(pid: number): readonly number[] {
  const parents = readdirSync('/proc').flatMap((name) => {
    try {
      const [, parent] = /^\d+ \(.*\) \S+ (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, 'utf8')) ?? [];
      return /^\d+$/.test(name) ? [{ pid: Number(name), parent: Number(parent) }] : [];
    } catch {
      return [];
    }
  });
  const below = (of: number): number[] =>
    parents.filter(({ parent }) => parent === of).flatMap((one) => [one.pid, ...below(one.pid)]);
  return below(pid);
}

/** The home of a URL, as another home uses it. */
export interface PeerHome {
  push(
    store: SqliteTapeStore,
    o?: { readonly sessions?: readonly string[]; readonly dryRun?: boolean; readonly raw?: boolean },
  ): Promise<Pushed>;
  pull(store: SqliteTapeStore, o?: { readonly dryRun?: boolean }): Promise<Pulled>;
}

export function peerAt(url: string, env: SshEnv, idleMs = 60_000): PeerHome {
  // Nothing is kept of such a remote.
  const state = '/nonexistent/state';
  const remote = async () => await openRemote(url, { state, env, idleMs });
  return {
    push: async (store, o) => await push(store, await remote(), { state, secrets: [], ...o }),
    pull: async (store, o) => await pull(store, await remote(), { state, ...o }),
  };
}
