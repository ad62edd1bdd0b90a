import { generateKeyPairSync } from 'node:crypto';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

function homeWithFork(): TempHome {
  const home = tempHome();
  home.session('main', user('one'), user('two'));
  using store = home.open();
  store.lineage.fork('main', { name: 'child' });
  return home;
}

/** The findings about an attestation, and the exit code. */
async function against(home: TempHome, file: string, ...options: string[]) {
  const { code, stdout } = await home.here(['check', '--json', '--against', file, ...options]);
  const { sections } = JSON.parse(stdout) as { sections: { attestation: { findings: { id: string }[] } } };
  return [code, ...sections.attestation.findings.map(({ id }) => id)];
}

/** Writes an attestation of a home now. */
async function attested(home: TempHome, ...options: string[]): Promise<string> {
  const file = home.file('heads.txt');
  rmSync(file, { force: true });
  expect(await home.here(['attest', '-o', file, ...options, '--quiet'])).toMatchObject({ code: 0 });
  return file;
}

/** Puts an earlier copy of the database in the place of the present one. */
function rollBack(home: TempHome, copy: string): void {
  for (const end of ['-wal', '-shm']) rmSync(`${home.db}${end}`, { force: true });
  cpSync(copy, home.db);
}

describe('tape attest and tape check --against', () => {
  test('- is stdout, to which no backup goes', async () => {
    using home = homeWithFork();
    const { code, stdout } = await home.here(['attest', '-o', '-']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^tapedeck-attestation 1\n/);
    const { text } = json(await home.here(['attest', '--output=-', '--json'])) as { text: string };
    expect(text).toMatch(/^tapedeck-attestation 1\n/);
    expect(await home.here(['backup', '-'])).toMatchObject({ code: 2 });
  });

  test('prove that tapes have only grown', async () => {
    using home = homeWithFork();
    const file = await attested(home);
    expect(
      readFileSync(file, 'utf8')
        .split('\n')
        .map((line) => line.split(' ')[0]),
    ).toEqual(['tapedeck-attestation', 'at', 'graph', 'session', 'session', 'sessions', 'sha256', '']);
    expect(await against(home, file)).toEqual([0]);
    {
      using store = home.open();
      store.entries.append('main', [user('three')]);
      store.entries.append('child', [assistant('Done.')]);
      store.lineage.merge('child');
      store.entries.redact('main', 2, 'a test');
      store.history.rewind('main', 2);
      store.sessions.open('more');
    }
    expect(await against(home, file)).toEqual([0]);
    expect(await against(home, file, 'child')).toEqual([0]);
  });

  test('name the sessions that were cut off, written anew or removed, though their hashes fit', async () => {
    using home = homeWithFork();
    await home.here(['backup', home.file('early.db')]);
    {
      using store = home.open();
      store.entries.append('main', [user('three')]);
      store.entries.append('child', [assistant('Done.')]);
      store.sessions.open('more');
    }
    const file = await attested(home);
    rollBack(home, home.file('early.db'));
    rmSync(home.graph);
    expect(await against(home, file)).toEqual([
      5,
      'attested-tape-shorter:main@4',
      'attested-tape-shorter:child@5',
      'attested-session-missing:more',
      'attested-graph-differs',
    ]);
    {
      using store = home.open();
      store.entries.append('main', [user('Three')]);
      store.entries.append('child', [assistant('done')]);
      store.sessions.open('other');
    }
    expect((await home.here(['verify'])).code).toBe(0);
    expect(await against(home, file)).toEqual([
      5,
      'attested-entry-differs:main@4',
      'attested-entry-differs:child@5',
      'attested-session-missing:more',
      'attested-graph-differs',
    ]);
    expect(await against(home, file, 'main')).toEqual([5, 'attested-entry-differs:main@4']);
  });

  test('an attestation that was changed, cut off or signed by another proves nothing', async () => {
    using home = homeWithFork();
    const pairs = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')] as const;
    const [own, other] = pairs.map(({ publicKey }, i) => {
      const path = home.file(`public-${i}`);
      writeFileSync(path, publicKey.export({ type: 'spki', format: 'pem' }));
      return path;
    }) as [string, string];
    const key = home.file('private');
    writeFileSync(key, pairs[0].privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const signed = await attested(home, '--key', key);
    expect(await against(home, signed, '--public-key', own)).toEqual([0]);
    expect(await against(home, signed)).toEqual([0, 'attestation-unverified']);
    expect(await against(home, signed, '--public-key', other)).toEqual([5, 'attestation-invalid']);
    const text = readFileSync(signed, 'utf8');
    const lines = text.split('\n');
    for (const wrong of [
      '',
      'hello\n',
      text.replace('graph 2', 'graph 1'),
      text.replaceAll('\n', '\r\n'),
      lines.slice(0, 4).join('\n'),
      `${text}more\n`,
    ]) {
      writeFileSync(signed, wrong);
      expect(await against(home, signed, '--public-key', own), wrong).toEqual([5, 'attestation-invalid']);
    }
    writeFileSync(signed, `${lines.slice(0, -2).join('\n')}\n`);
    expect(await against(home, signed)).toEqual([0]);
    expect(await against(home, signed, '--public-key', own)).toEqual([5, 'attestation-invalid']);
  });

  test('print the attestation without --output, refuse to replace a file, and refuse other keys', async () => {
    using home = homeWithFork();
    const file = await attested(home);
    const printed = await home.here(['attest']);
    const body = (text: string) => text.split('\n').filter((line) => /^(?:session|graph) /.test(line));
    expect(body(printed.stdout)).toEqual(body(readFileSync(file, 'utf8')));
    expect(json(await home.here(['attest', '--json']))).toMatchObject({
      sessions: 2,
      graph: 2,
      signed: false,
    });
    expect((await home.here(['attest', '-o', file])).code).toBe(4);
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
    writeFileSync(home.file('rsa'), rsa.export({ type: 'pkcs8', format: 'pem' }));
    expect((await home.here(['attest', '--key', home.file('rsa')])).code).toBe(2);
    expect((await home.here(['attest', '--key', home.file('none')])).code).toBe(3);
    expect((await home.here(['check', '--against', home.file('none')])).code).toBe(3);
  });

  test('work for many sessions', async () => {
    using home = tempHome();
    const count = sized(100, 200, 10_000);
    {
      using store = home.open();
      for (let n = 0; n < count; n += 1) store.sessions.open(`s${n}`);
    }
    const file = await attested(home);
    expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(count + 6);
    expect(await against(home, file)).toEqual([0]);
  }, 120_000);
});
