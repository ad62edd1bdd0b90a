import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { TapeError } from '../errors.ts';
import { type RemoteOptions, remoteError } from './packs.ts';
import { endProgram, startProgram } from './program.ts';
import { type SshAddress, shellQuoted } from './ssh-address.ts';
import { textIn, Wire, WireError, wireVersion } from './wire.ts';

/** What a connection needs beside the address. */
export type SshOptions = Pick<RemoteOptions, 'env' | 'idleMs'>;

const defaultIdleMs = 120_000;
/** How long ssh may take to end after its input has ended, in milliseconds. */
const endMs = 2_000;
/** How much of what ssh says is kept, in characters. */
const saidMax = 4_000;

/** A connection over which a home is served. */
export interface Served {
  readonly wire: Wire;
  /** The error of the remote that something failed with. Other errors stay as they are. */
  failure(error: unknown): Promise<unknown>;
}

/**
 * Connects to a home, and ends the connection after an act on it.
 * @param doing what fails if the connection does: `push to`
 * @throws TAPE_REMOTE_FAILED
 */
export async function connected<T>(
  address: SshAddress,
  doing: string,
  {
    env = process.env,
    idleMs = defaultIdleMs,
    act,
  }: SshOptions & { readonly act: (served: Served) => Promise<T> },
): Promise<T> {
  const child = startProgram(wordsOf(address, env), { env: { ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  const ssh = new Ssh(child, { address, doing, idleMs });
  try {
    await once(child, 'spawn');
    await ssh.greeted();
    return await act(ssh);
  } catch (error) {
    throw await ssh.failure(error);
  } finally {
    await ssh.end();
  }
}

function wordsOf({ words, home }: SshAddress, env: NonNullable<SshOptions['env']>): readonly string[] {
  const ssh = env.TAPE_SSH_COMMAND ?? '';
  const command = `${env.TAPE_REMOTE_TAPE || 'tape'} raw serve --home ${shellQuoted(home)}`;
  const all = ['-T', '-oBatchMode=yes', '-oClearAllForwardings=yes', ...words, command];
  return ssh === '' ? ['ssh', ...all] : ['/bin/sh', '-c', `${ssh} "$@"`, 'ssh', ...all];
}

class Ssh implements Served {
  readonly wire: Wire;
  readonly #child: ChildProcess;
  readonly #at: { readonly address: SshAddress; readonly doing: string };
  #said = '';
  #isGreeted = false;
  /** It says what it must not, or nothing: its end is not waited for. */
  #isWrong = false;

  constructor(
    child: ChildProcess,
    { idleMs, ...at }: { readonly address: SshAddress; readonly doing: string; readonly idleMs: number },
  ) {
    this.#child = child;
    this.#at = at;
    child.stderr?.on('data', (chunk: Buffer) => {
      if (this.#said.length < saidMax) this.#said += chunk.toString('utf8');
    });
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.on('error', () => {});
    const output = (text: string) =>
      new Promise<void>((resolve, reject) => {
        child.stdin?.write(text, (error) => (error == null ? resolve() : reject(error)));
      });
    this.wire = new Wire({ input: child.stdout as AsyncIterable<Uint8Array>, output, idleMs });
  }

  /** Reads the first line of the other side. */
  async greeted(): Promise<void> {
    const { tape, v, version } = await this.wire.receive();
    if (tape !== 'remote') throw new WireError('it does not begin as tape does');
    if (v !== wireVersion)
      throw new WireError(
        `its tape (${textIn(version)}) speaks version ${textIn(JSON.stringify(v))} of what remotes say, and this one ${wireVersion}: update the older one`,
      );
    this.#isGreeted = true;
  }

  async failure(error: unknown): Promise<unknown> {
    if (error instanceof TapeError) return error;
    const { address, doing } = this.#at;
    const { url, home } = address;
    const failed = (why: string, data: { readonly home?: string } = {}) =>
      remoteError('TAPE_REMOTE_FAILED', { act: doing, url, why }, { cause: error, ...data });
    const { code, syscall, message } = error as NodeJS.ErrnoException;
    if (syscall?.startsWith('spawn') === true)
      return failed(code === 'ENOENT' ? 'ssh is not installed' : `ssh cannot be run: ${message}`);
    if (!(error instanceof WireError)) return error;
    if (!error.isLost) {
      this.#isWrong = true;
      return failed(message, error.isMissing ? { home } : {});
    }
    // What ssh says of it comes with its end.
    await this.#ended();
    const { exitCode } = this.#child;
    const lines = this.#said.split('\n').map((line) => line.trim());
    const said = textIn(
      lines
        .filter((line) => line !== '')
        .slice(0, 3)
        .join('; '),
    );
    if (exitCode === 127) return failed(`there is no tape (TAPE_REMOTE_TAPE names it): ${said}`);
    if (this.#isGreeted) return failed(said === '' ? message : `${message}: ${said}`);
    if (exitCode === 2) return failed(`its tape does not know 'raw serve', and may be older: ${said}`);
    return failed(said === '' ? 'it ended without a word' : said);
  }

  /** Ends the connection: the other side ends with its input. */
  async end(): Promise<void> {
    const { stdin, stdout, stderr } = this.#child;
    stdin?.end();
    if (!this.#isWrong) await this.#ended();
    endProgram(this.#child);
    for (const stream of [stdin, stdout, stderr]) stream?.destroy();
  }

  async #ended(): Promise<void> {
    const { pid, exitCode, signalCode } = this.#child;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    const over = new AbortController();
    const { signal } = over;
    await Promise.race([once(this.#child, 'exit', { signal }), sleep(endMs, undefined, { signal })]).catch(
      () => {},
    );
    over.abort();
  }
}
