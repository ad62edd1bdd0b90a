import { closeSync, openSync } from 'node:fs';
import { bundleBytesMax } from '../bundle/bundle.ts';
import type { TapeError } from '../errors.ts';
import { type GitAddress, gitAddress } from './git-address.ts';
import { GitCache, packsRef } from './git-cache.ts';
import type { GitCall, GitEnd } from './git-call.ts';
import { type GitPack, otherThanFile, readTree, type TreeEntry, treeText } from './git-tree.ts';
import { type Pack, type Packs, packName, type RemoteOptions, remoteError } from './packs.ts';

/** A server that runs a hook says nothing meanwhile. */
const defaultIdleMs = 120_000;

/** Hooks and commands of a repository on this machine do not run: its owner may be another one. */
const receivePack =
  'git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true -c receive.autogc=false receive-pack';

/**
 * The packs of a git repository, under a ref of their own: each commit adds one, and its tree has all of them. That a push
 * replaces the commit that it builds on, and no other, makes it succeed or leave everything as it is.
 * @throws TAPE_BAD_OPTION for a URL that is not allowed
 */
export function gitPacks(url: string, o: RemoteOptions): Packs {
  const address = gitAddress(url, process.cwd());
  if (address === undefined) throw new TypeError('it is no URL of a git repository');
  return new GitPacks(address, o);
}

/** A commit with packs, and what is in it. */
interface Tip {
  /** Nothing where there is no commit yet. */
  readonly commit: string;
  readonly entries: readonly TreeEntry[];
  readonly packs: readonly GitPack[];
}

const noTip: Tip = { commit: '', entries: [], packs: [] };

class GitPacks implements Packs {
  readonly url: string;
  readonly #at: GitAddress;
  readonly #cache: GitCache;
  readonly #idleMs: number;
  readonly #bytesMax: number;
  #tip: Tip = noTip;

  constructor(at: GitAddress, o: RemoteOptions) {
    const { state, env = process.env, idleMs = defaultIdleMs, bytesMax = bundleBytesMax } = o;
    this.url = at.shown;
    this.#at = at;
    this.#cache = new GitCache(state, env);
    this.#idleMs = idleMs;
    this.#bytesMax = bytesMax;
  }

  async list(): Promise<readonly Pack[]> {
    const commit = await this.#ask();
    this.#tip = commit === '' ? noTip : await this.#fetched(commit);
    for (const { name, entry } of this.#tip.packs) {
      const other = otherThanFile(entry);
      if (other !== undefined) throw this.#bad('read', `'${name}' is ${other}, and no pack`, name);
    }
    return this.#tip.packs;
  }

  async read({ name, bytes }: Pack, into: string): Promise<void> {
    const found = this.#tip.packs.find((pack) => pack.name === name);
    if (found === undefined) throw this.#bad('read', `'${name}' is gone`, name);
    if (found.bytes !== bytes)
      throw this.#bad('read', `'${name}' has ${found.bytes} bytes, and had ${bytes}`, name);
    if (bytes > this.#bytesMax) throw this.#bad('read', `'${name}' has over ${this.#bytesMax} bytes`, name);
    const fd = openSync(into, 'wx', 0o600);
    try {
      await this.#cache.run(`read '${name}'`, ['cat-file', 'blob', found.entry.object], { into: fd });
    } finally {
      closeSync(fd);
    }
  }

  async add(number: number, file: string): Promise<boolean> {
    await this.list();
    const { commit: parent, entries, packs } = this.#tip;
    if (packs.some((pack) => pack.number === number)) return false;
    const run = async (args: readonly string[], call?: GitCall) =>
      (await this.#cache.run(`add '${packName(number)}'`, args, call)).trim();
    const object = await run(['hash-object', '-w', '--no-filters', '--', file]);
    const added = { mode: '100644', type: 'blob', object, name: packName(number) };
    const tree = await run(['mktree', '-z'], { input: treeText([...entries, added]) });
    const above = parent === '' ? [] : ['-p', parent];
    const commit = await run(['commit-tree', tree, ...above, '-m', `Pack ${number}`]);
    return await this.#push(commit, parent);
  }

  /**
   * Pushes a commit if its parent is still the last one. After a failure, looks at what became of it: the answer may be
   * what was lost.
   */
  async #push(commit: string, parent: string): Promise<boolean> {
    const lease = `--force-with-lease=${packsRef}:${parent}`;
    const pushed = await this.#there([
      ...['push', '--porcelain', '--progress', '--no-verify', lease],
      ...(this.#at.isLocal ? [`--receive-pack=${receivePack}`] : []),
      ...['--', this.#at.address, `${commit}:${packsRef}`],
    ]);
    if (!pushed.ok) {
      const failed = this.#failed('push to', refusalIn(pushed));
      const now = await this.#ask().catch(() => parent);
      if (now === parent) throw failed;
      if (now !== commit) return await this.#isIn(commit, now);
    }
    this.#cache.keep(commit);
    await this.#cache.tidy();
    return true;
  }

  /** Whether another push was built on a commit: then it had arrived. */
  async #isIn(commit: string, now: string): Promise<boolean> {
    if (now === '') return false;
    this.#tip = await this.#fetched(now);
    const words = ['merge-base', '--is-ancestor', commit, now];
    return (await this.#cache.call(words)).ok;
  }

  /** The commit that the ref has at the remote, or nothing. Opens the repository in which such commits are kept. */
  async #ask(): Promise<string> {
    const words = ['ls-remote', '--', this.#at.address, packsRef, 'HEAD'];
    const { ok, stdout, why } = await this.#there(words, { repository: undefined, printedMax: 1024 * 1024 });
    if (!ok) throw this.#failed('reach', why);
    const refs = stdout.split('\n').map((line) => /^([0-9a-f]{40}(?:[0-9a-f]{24})?)\t(.+)$/.exec(line));
    await this.#cache.open(refs.some((ref) => ref?.[1]?.length === 64) ? 'sha256' : 'sha1');
    return refs.find((ref) => ref?.[2] === packsRef)?.[1] ?? '';
  }

  /** Brings a commit here, unless it is, and reads its tree. */
  async #fetched(commit: string): Promise<Tip> {
    if (this.#cache.tip !== commit) {
      await this.#cache.check();
      const words = ['fetch', '--progress', '--no-tags', '--no-write-fetch-head', '--', this.#at.address];
      const { ok, why } = await this.#there([...words, packsRef], { fileMax: this.#bytesMax });
      if (!ok && why.includes('File too large'))
        throw this.#bad('fetch from', `it brings over ${this.#bytesMax} bytes`);
      if (!ok) throw this.#failed('fetch from', why);
      const type = await this.#cache.call(['cat-file', '-t', commit]);
      if (!type.ok) throw this.#failed('fetch from', 'its packs were replaced meanwhile');
      if (type.stdout !== 'commit\n')
        throw this.#bad('read', `${packsRef} is a ${type.stdout.trim()}, and no commit`);
      this.#cache.keep(commit);
      await this.#cache.tidy();
    }
    const printed = await this.#cache.run('read its packs', ['ls-tree', '-z', '-l', '--full-tree', commit]);
    return { commit, ...readTree(printed) };
  }

  /** Runs git for an act with the other side. */
  async #there(args: readonly string[], call: GitCall = {}): Promise<GitEnd> {
    return await this.#cache.call(args, { idleMs: this.#idleMs, ...call });
  }

  #failed(act: string, why: string): TapeError {
    return remoteError('TAPE_REMOTE_FAILED', { act, url: this.url, why: this.#withoutSecrets(why) });
  }

  #bad(act: string, why: string, pack?: string): TapeError {
    const data = pack === undefined ? {} : { pack };
    return remoteError('TAPE_BAD_REMOTE', { act, url: this.url, why }, data);
  }

  #withoutSecrets(text: string): string {
    const left = text.replace(/(https?:\/\/)[^/@\s]+@/g, '$1***@');
    return this.#at.secrets.reduce((rest, secret) => rest.replaceAll(secret, '***'), left);
  }
}

/** Why a push was refused: the other side says it for the ref, or git says it of the whole. */
function refusalIn({ stdout, why }: GitEnd): string {
  const [, refusal] = /^!\t\S+\t\[(.+\))$/m.exec(stdout) ?? [];
  return refusal === undefined ? why : refusal.replace('] (', ': ').replace(/\)$/, '');
}
