import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { TapeError } from '../errors.ts';
import { makeDirectories } from '../sqlite/directories.ts';
import { sync } from '../sqlite/sync.ts';
import { type GitCall, type GitEnd, runGit } from './git-call.ts';

/** The ref with the packs: outside of branches and tags, so that no one sees it who does not look for it. */
export const packsRef = 'refs/tapedeck/packs';

const dayMs = 24 * 3_600_000;

/** The environment of git. */
type Environment = Readonly<Record<string, string | undefined>>;

/** How a repository names its objects: by the length of their names. */
export type ObjectFormat = 'sha1' | 'sha256';

/**
 * A bare repository of the home, which has what was fetched from one remote, so that each fetch moves what is new. Its ref
 * is written here: a lock of git that a kill leaves behind would stay for ever.
 */
export class GitCache {
  readonly #state: string;
  readonly #env: Environment;
  #format: ObjectFormat = 'sha1';

  constructor(state: string, env: Environment) {
    this.#state = state;
    this.#env = env;
  }

  get path(): string {
    return join(this.#state, this.#format === 'sha1' ? 'git' : `git-${this.#format}`);
  }

  /** The commit that was fetched or pushed last; nothing before. */
  get tip(): string {
    return existsSync(this.#ref) ? readFileSync(this.#ref, 'utf8').trim() : '';
  }

  /** Forgets a commit that a loss of power took away: git would stop at its name. */
  async check(): Promise<void> {
    const { tip } = this;
    const isThere = async () => {
      const words = ['cat-file', '-e', `${tip}^{tree}`];
      return /^[0-9a-f]{40,64}$/.test(tip) && (await this.call(words)).ok;
    };
    if (existsSync(this.#ref) && !(await isThere())) rmSync(this.#ref);
  }

  get #ref(): string {
    return join(this.path, packsRef);
  }

  get #isThere(): boolean {
    return existsSync(join(this.path, 'HEAD'));
  }

  /** Makes the repository, unless it is there. @throws TAPE_IO */
  async open(format: ObjectFormat): Promise<void> {
    this.#format = format;
    if (this.#isThere) {
      onDisk(() => this.#sweep());
      return;
    }
    const draft = `${this.path}.${randomBytes(6).toString('hex')}.part`;
    try {
      onDisk(() => makeDirectories(this.#state, 0o700));
      const words = ['init', '--quiet', '--bare', '--template=', `--object-format=${format}`, '--', draft];
      const { ok, why } = await runGit({ env: this.#env }, words);
      if (!ok) throw failed('make a repository for a git remote', why);
      onDisk(() => this.#place(draft));
    } finally {
      rmSync(draft, { recursive: true, force: true });
    }
  }

  /** Gives a new repository its place, unless another process was faster: at any moment until then it can be. */
  #place(draft: string): void {
    try {
      renameSync(draft, this.path);
    } catch (error) {
      if (!this.#isThere) throw error;
    }
  }

  /** Records that all of a commit is here. @throws TAPE_IO */
  keep(commit: string): void {
    onDisk(() => {
      const draft = join(this.path, `${randomBytes(6).toString('hex')}.part`);
      writeFileSync(draft, `${commit}\n`, { mode: 0o600 });
      sync(draft);
      mkdirSync(join(this.#ref, '..'), { recursive: true, mode: 0o700 });
      renameSync(draft, this.#ref);
    });
  }

  /** Removes what a fetch that was cut off left a day ago. */
  #sweep(): void {
    const packs = join(this.path, 'objects/pack');
    for (const name of readdirSync(packs).filter((one) => one.startsWith('tmp_'))) {
      const { mtimeMs = Date.now() } = statSync(join(packs, name), { throwIfNoEntry: false }) ?? {};
      if (Date.now() - mtimeMs > dayMs) rmSync(join(packs, name), { force: true });
    }
  }

  /** Has git pack what has gathered, once that is much. */
  async tidy(): Promise<void> {
    const settings = ['gc.autoDetach=false', 'gc.packRefs=false'];
    const words = settings.flatMap((setting) => ['-c', setting]);
    await this.call([...words, 'gc', '--auto', '--quiet']);
  }

  /** Runs git in it. */
  async call(args: readonly string[], call: GitCall = {}): Promise<GitEnd> {
    return await runGit({ repository: this.path, env: this.#env, ...call }, args);
  }

  /** The same, and returns what git prints. @throws TAPE_IO */
  async run(doing: string, args: readonly string[], call: GitCall = {}): Promise<string> {
    const { ok, stdout, why } = await this.call(args, call);
    if (!ok) throw failed(doing, why);
    return stdout;
  }
}

function failed(doing: string, why: string, cause?: unknown): TapeError {
  return new TapeError('TAPE_IO', `cannot ${doing}: ${why}`, { cause });
}

/** Runs an act that uses the disk. @throws TAPE_IO */
function onDisk(act: () => unknown): void {
  try {
    act();
  } catch (cause) {
    throw failed('keep what comes from a git remote', (cause as Error).message, cause);
  }
}
